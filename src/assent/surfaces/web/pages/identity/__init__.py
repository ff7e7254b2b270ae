"""Pages about people, their keys and their sign-in."""
