"""Studies of models that read texts."""
