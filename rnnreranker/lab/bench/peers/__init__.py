"""The same tasks by other packages, in turn with ours."""
