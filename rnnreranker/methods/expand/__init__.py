"""Expanders, one file a method."""
