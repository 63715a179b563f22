"""Regressions: a spec (YAML) → a plan of commands → results (JSON) → a page."""
