"""The MCP server: the same memories for every agent that speaks the Model Context Protocol."""
