"""The routes of the web inbox, one module per page."""
