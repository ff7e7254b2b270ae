"""Event streaming: a thread's runs as events of the streaming protocol v2 and v3, translated from their frames."""
