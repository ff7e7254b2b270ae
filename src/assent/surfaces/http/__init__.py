"""Shared by all HTTP surfaces: middleware, authentication, limits, strict JSON, error responses."""
