"""The ways of making soft labels: every file here but `base` is one."""
