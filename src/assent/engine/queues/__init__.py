"""How runs whose turn it is get to where they are executed: within this process, or by workers over Postgres."""
