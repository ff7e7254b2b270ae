"""Limits of requests and connections: per caller, per address and altogether."""
