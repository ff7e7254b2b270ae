"""The reference assistant: a LangGraph agent that asks before it acts, and the calendar it works on."""
