"""Assent runs LangGraph agents, stops them where a person must agree, and gives people one place to decide."""
