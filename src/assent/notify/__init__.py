"""How Assent reaches out: the guarded HTTP client, and the sender that carries what the outbox holds."""
