"""The REST routes of users, keys, passkeys and sessions."""
