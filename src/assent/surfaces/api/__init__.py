"""The REST API: one file per noun, each with a function that makes its routes from the services it needs."""
