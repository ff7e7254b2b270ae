"""SQLite and Postgres: connections, prepared statements, and what differs between them."""
