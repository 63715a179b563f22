"""Rehearsals: a plan's own commands to its end, on miniatures of what it reads in the original formats and places."""
