"""Policies of a tenant: putting them in force, standing approvals, and the rules of single agents."""
