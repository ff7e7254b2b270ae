"""Benchmarks: `python -m bench` runs every `bench_*.py` here, or those named, and prints one table."""
