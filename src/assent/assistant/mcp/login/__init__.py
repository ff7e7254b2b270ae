"""Sign-ins at MCP servers by OAuth: authorization code with PKCE, dynamic registration, refresh. The protocol is that
of the MCP library; here are the place of the tokens, and the part in which a person takes part."""
