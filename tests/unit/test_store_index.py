"""`store.index` of `langgraph.json`: read, loaded, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import ensure_embeddings

from assent.errors import LoadError, ManifestError
from assent.runs.project.loader import load_index
from assent.runs.project.manifest import Manifest, read_manifest

FUNCTION = "def embed(texts):\n    return [[1.0, 2.0] for _ in texts]\n\nnothing = 3\n"


def manifest(folder: Path, index: Any) -> Manifest:
    (folder / "embeddings.py").write_text(FUNCTION)
    path = folder / "langgraph.json"
    path.write_text(json.dumps({"graphs": {}, "store": {"index": index}}))
    return read_manifest(path)


async def test_function_of_the_project_is_the_embedding(tmp_path: Path) -> None:
    index = load_index(manifest(tmp_path, {"dims": 2, "embed": "./embeddings.py:embed", "fields": ["text", "tags[*]"]}))
    assert index is not None
    near = await index.near("x")
    assert near.vector == pytest.approx((0.4472, 0.8944), abs=1e-3)
    assert near.model == "./embeddings.py:embed:2"


async def test_provider_is_opened_by_langchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def init(name: str) -> Any:
        asked.append(name)
        return ensure_embeddings(lambda texts: [[1.0, 0.0] for _ in texts])

    monkeypatch.setattr("langchain.embeddings.init_embeddings", init)
    index = load_index(manifest(tmp_path, {"dims": 2, "embed": "openai:text-embedding-3-small"}))
    assert index is not None
    assert asked == ["openai:text-embedding-3-small"]
    assert (await index.near("x")).vector == (1.0, 0.0)


@pytest.mark.parametrize("index", [None, {}])
def test_without_an_index_there_is_none(tmp_path: Path, index: Any) -> None:
    assert load_index(manifest(tmp_path, index)) is None


@pytest.mark.parametrize(
    ("index", "names"),
    [
        ([], "store.index"),
        ({"embed": "openai:x"}, "store.index.dims"),
        ({"dims": 0, "embed": "openai:x"}, "store.index.dims"),
        ({"dims": True, "embed": "openai:x"}, "store.index.dims"),
        ({"dims": "2", "embed": "openai:x"}, "store.index.dims"),
        ({"dims": 20_000, "embed": "openai:x"}, "store.index.dims"),
        ({"dims": 2}, "store.index.embed"),
        ({"dims": 2, "embed": "openai"}, "store.index.embed"),
        ({"dims": 2, "embed": 5}, "store.index.embed"),
        ({"dims": 2, "embed": "openai:x", "fields": "text"}, "store.index.fields"),
        ({"dims": 2, "embed": "openai:x", "fields": [1]}, "store.index.fields"),
    ],
)
def test_invalid_index_is_refused_by_name(tmp_path: Path, index: Any, names: str) -> None:
    with pytest.raises(ManifestError, match=names):
        manifest(tmp_path, index)


@pytest.mark.parametrize(
    "embed", ["./embeddings.py:missing", "./nowhere.py:embed", "nobody:knows-this", "./embeddings.py:nothing"]
)
def test_embedding_that_does_not_load_stops_the_start(tmp_path: Path, embed: str) -> None:
    with pytest.raises(LoadError):
        load_index(manifest(tmp_path, {"dims": 2, "embed": embed}))
