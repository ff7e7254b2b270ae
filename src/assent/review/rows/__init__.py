"""Items, decisions, policies and grants as rows."""
