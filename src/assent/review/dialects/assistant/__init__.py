"""The dialects of the reference assistant."""
