"""How each kind of model is studied, a file each."""
