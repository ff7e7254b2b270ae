"""The gate: what agent authors put before the tools that need a person's consent.

`middleware` and `decorator` are the two ways in. Both lead through `passing`, the one place where it is decided whether
a call is made: only with a one-use grant for exactly this call, consumed before the effect. Who keeps the grants is the
`keeper`: the server that runs the graph, or, without one, a local file (`inbox`).
"""
