"""The gate: the guard that agent authors put before tools that need a person's approval.

`middleware` and `decorator` are the two entry points. Both use `passing`, the single place that decides whether a call
runs: only with a one-use grant for exactly this call, consumed before the effect. The `keeper` stores the grants: the
server that runs the graph, or, without one, a local file (`inbox`).
"""
