"""Operators' commands on the database."""
