"""The documentation's commands are run as those of the command line's own tests are."""

from tests.cli.conftest import assent, empty_database, folder

__all__ = ["assent", "empty_database", "folder"]
