"""Plumbing: errors, files, processes, settings, methods by name, commands, records, pages."""
