"""Reviewers' commands."""
