"""A server on this machine: a page and a JSON API to search and rerank one index, and the same as tools for MCP."""
