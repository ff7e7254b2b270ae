"""LangGraph's MCP endpoint: every assistant is a tool."""
