"""Losses of training: one file each, found by its name."""
