"""Deployments and their threads as rows."""
