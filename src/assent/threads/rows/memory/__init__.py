"""The store's items as rows, and the filters of their search."""
