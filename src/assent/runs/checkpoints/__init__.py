"""LangGraph's checkpoints in our store, with a closed list of types."""
