"""The REST surface: one file per noun, each a function that makes its routes from the services it needs."""
