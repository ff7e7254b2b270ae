"""LangGraph's long-term store on our store."""
