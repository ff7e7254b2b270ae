"""The author's project: its `langgraph.json` and its graphs."""
