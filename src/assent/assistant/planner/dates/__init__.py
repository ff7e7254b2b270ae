"""Dates, times and lengths as people write them."""
