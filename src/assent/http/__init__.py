"""What every HTTP surface shares: the boundary each request passes, who is calling, strict JSON, error responses."""
