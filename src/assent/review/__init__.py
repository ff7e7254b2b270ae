"""The inbox: items, decisions, policies, grants, and the use cases over them."""
