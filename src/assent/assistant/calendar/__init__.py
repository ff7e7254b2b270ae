"""`assistant-mcp`: the MCP server of the reference assistant. A calendar in a file of its own, a map of an invented
town, an optional login and a form, so that every way in which a tool can need a person exists offline.

`server.create_server` puts it together. Tools (`tools`, `maps`) speak MCP; `events`, `login`, `places`, `rooms` and
`dates` do the work and know nothing of it; `asking` and `guard` are where the two eras of the protocol differ.
"""
