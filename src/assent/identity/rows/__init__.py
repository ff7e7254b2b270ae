"""Identity as rows: the statements over users, keys, sessions and passkeys."""
