"""Node with the stock JavaScript SDK in two versions, as `make javascript` installs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.missing import missing

INSTALLED = Path(__file__).parents[1] / ".tools" / "javascript"
VERSIONS = ("sdk-1.12", "sdk-2.0")
_PATIENCE = 240.0


@pytest.fixture(scope="session")
def node() -> Path:
    if not ((INSTALLED / ".stamp").exists() and (INSTALLED / "node").exists()):
        missing("the JavaScript SDK: make javascript, which needs Node 20 or PyPI, and npm's registry")
    return INSTALLED / "node"


def sdk(version: str) -> str:
    """The address of the SDK, for `import`."""
    return (INSTALLED / "node_modules" / version / "dist" / "index.js").as_uri()


def printed(node: Path, *command: str | Path, **environment: str) -> str:
    """What a script prints; the test fails where the script does."""
    done = subprocess.run(
        [node, "--experimental-websocket", *command],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
