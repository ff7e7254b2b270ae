"""JSON Schemas of agents: checked before they are used, and bounded in the work that they cause."""
