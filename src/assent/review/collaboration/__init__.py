"""How people work on items together: comments that mention people, owners, saved reasons."""
