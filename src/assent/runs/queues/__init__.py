"""Queues that execute due runs: within this process, or by workers over Postgres."""
