"""The web inbox: server-rendered pages."""
