"""Outgoing calls: the guarded HTTP client, and the sender of the outbox."""
