"""Specs: what they say, read and checked."""
