"""The MCP server: read-only tools with which an agent queries a warehouse."""
