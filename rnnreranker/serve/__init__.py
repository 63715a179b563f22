"""A server for one index: a page, a JSON API, and tools for MCP."""
