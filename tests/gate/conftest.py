"""A local inbox on a fresh file, and the tools that count what they did."""

from pathlib import Path

import pytest

from tests.contract.stores import folder, migrated_file
from tests.gate.desk import Desk

__all__ = ["folder", "migrated_file"]


@pytest.fixture
def desk(folder: Path, migrated_file: Path) -> Desk:
    return Desk(folder, migrated_file)
