"""Views of a thread: its page, its graph, its conversation, and the context of an item."""
