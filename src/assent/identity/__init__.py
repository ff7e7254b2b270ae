"""People, programs and their rights: users, keys, sessions, passkeys, roles, the project's own auth handlers."""
