"""The contract suite: what every store must do, whichever database is below it."""

from tests.contract.stores import database, folder, store

__all__ = ["database", "folder", "store"]
