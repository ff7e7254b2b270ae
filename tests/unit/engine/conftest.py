"""Small projects of agent authors, written for one test and forgotten after it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from assent.runs.checkpoints.serde import require_strict_msgpack
from assent.runs.project.manifest import Manifest, read_manifest

require_strict_msgpack()

Project = Callable[..., Manifest]

EXAMPLES = Path(__file__).parents[2] / "graphs"


@pytest.fixture
def project(tmp_path: Path, forgetful: None) -> Project:
    """Writes files, given by name, and a langgraph.json, given by its keys; gives what the manifest says."""

    def write(files: dict[str, str] | None = None, **document: Any) -> Manifest:
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(dedent(text), encoding="utf-8")
        path = tmp_path / "langgraph.json"
        path.write_text(json.dumps({"graphs": {}, **document}), encoding="utf-8")
        return read_manifest(path)

    return write


@pytest.fixture
def examples(forgetful: None) -> Manifest:
    return read_manifest(EXAMPLES / "langgraph.json")


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[None]:
    """Takes back what loading a project leaves in the process: its modules, its folders, its environment."""
    path, environment = list(sys.path), dict(os.environ)
    yield
    sys.path[:] = path
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
