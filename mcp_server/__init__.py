"""The MCP server, a skin of the library: an agent asks a warehouse, and changes nothing."""
