"""The conversation with the assistant behind `/run` and `/resume`."""
