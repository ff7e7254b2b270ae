"""Quotas of a tenant: usage and limits."""
