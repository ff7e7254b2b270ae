"""Live events of runs, sent from the executing process to followers."""
