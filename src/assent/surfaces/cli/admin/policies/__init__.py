"""Commands about policies and standing approvals."""
