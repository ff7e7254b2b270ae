"""Shared by all packages: canonical JSON, ids, the store and its transactions, the timeline, background tasks."""
