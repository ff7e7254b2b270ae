"""The assistant's MCP client: several servers, their connections, and calls that wait for a person."""
