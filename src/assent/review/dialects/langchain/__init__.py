"""The dialects of LangChain's `HumanInTheLoopMiddleware`."""
