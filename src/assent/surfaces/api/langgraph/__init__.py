"""The LangGraph Server API, one file per noun, so that its stock clients work unchanged.

Shapes, statuses and texts are that server's; errors are `{"detail": "…"}` with our `code` beside it.
"""
