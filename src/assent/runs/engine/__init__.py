"""The engine: executes runs of graphs and stores their outcomes."""
