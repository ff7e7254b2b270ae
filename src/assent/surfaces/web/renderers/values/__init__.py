"""Parsers for values in arguments: amounts, hosts, times."""
