"""`assistant-mcp`: the MCP server of the reference assistant. A calendar in a file of its own, a map of an invented
town, an optional login and a form, so that every way in which a tool can need a person exists offline.

`server.create_server` assembles it. Tools (`tools`, `booking`, `maps`) use MCP; `stores`, `events`, `login`, `places`,
`rooms` and `dates` do the work without it. `choice` takes the file, or a real calendar (`caldav`). `asking`
and `guard` handle the two generations of the protocol.
"""
