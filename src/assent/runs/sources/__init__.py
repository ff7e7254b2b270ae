"""Sources of imports: a running LangGraph server, or the tables of a LangGraph checkpointer."""
