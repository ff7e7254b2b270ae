"""What the surroundings do to a store: kill it, lock it, fill its disk, restart its database."""

from tests.contract.stores import database, folder, migrated_file, store

__all__ = ["database", "folder", "migrated_file", "store"]
