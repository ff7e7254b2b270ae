"""A local inbox on a fresh file, and the tools that count what they did."""

from pathlib import Path

import pytest

from tests.contract.stores import folder
from tests.gate.desk import Desk

__all__ = ["folder"]


@pytest.fixture
def desk(folder: Path, migrated_file: Path) -> Desk:
    return Desk(folder, migrated_file)
