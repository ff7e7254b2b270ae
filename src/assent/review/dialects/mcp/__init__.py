"""The dialects of MCP: forms, links, and the elicitations of `MCPAdapter`."""
