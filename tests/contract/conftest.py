"""The contract suite: what every store must do, whichever database is below it."""

from tests.contract.stores import database, folder, migrated_file, store

__all__ = ["database", "folder", "migrated_file", "store"]
