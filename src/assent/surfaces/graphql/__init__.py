"""The inbox over GraphQL. Everything but `routes` imports strawberry, which is slow: the first request loads it."""
