"""Live events: from where a run is executed to whoever follows it."""
