"""Methods of another package; rnnreranker knows them by the entry points in pyproject.toml alone."""
