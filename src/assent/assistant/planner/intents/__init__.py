"""The intents that the planner knows: to create, change and look up events."""
