"""Runs: start, answers, cancellation, and the engine that executes them."""
