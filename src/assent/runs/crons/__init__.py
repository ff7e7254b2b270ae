"""Crons: runs that start by a schedule."""
