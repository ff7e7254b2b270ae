"""langgraph.json: what is read, what is ignored, and that a wrong value is named by its key."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from assent.errors import ManifestError
from assent.runs.project.manifest import read_manifest
from assent.threads.rows.memory import MemorySection
from tests.unit.engine.conftest import Project


def test_graphs_are_files_modules_or_objects(project: Project, tmp_path: Path) -> None:
    described = {"path": "./agents/b.py:make", "description": "Second."}
    manifest = project(graphs={"a": "./a.py:graph", "b": described, "c": "my_agent.graphs:graph", "d": "d.py:graph"})
    a, b, c, d = manifest.graphs.values()
    assert (a.source.file, a.source.attribute, a.description) == (tmp_path / "a.py", "graph", None)
    assert (b.source.file, b.source.attribute, b.description) == (tmp_path / "agents/b.py", "make", "Second.")
    assert (c.source.file, c.source.module) == (None, "my_agent.graphs")
    assert d.source.file == tmp_path / "d.py"


def test_manifest_without_graphs_is_accepted(project: Project, tmp_path: Path) -> None:
    manifest = project()
    assert (manifest.graphs, manifest.env, manifest.roots, manifest.auth) == ({}, {}, (tmp_path,), None)


def test_env_may_be_an_object(project: Project) -> None:
    assert project(env={"MODEL": "tiny"}).env == {"MODEL": "tiny"}


def test_env_files_are_taken_as_written(project: Project) -> None:
    text = """
        # a comment
        PASSWORD=pa$$word${HOME}
        export QUOTED="two words"
        EMPTY=
    """
    manifest = project({".env": text}, env=".env")
    assert manifest.env == {"PASSWORD": "pa$$word${HOME}", "QUOTED": "two words", "EMPTY": ""}


def test_a_missing_env_file_is_a_warning(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    assert project(env=".env").env == {}
    assert ".env does not exist" in caplog.text


def test_dependencies_are_folders_or_installed_packages(project: Project, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    manifest = project(dependencies=[".", "./lib", "langchain-openai"])
    assert manifest.roots == (tmp_path, tmp_path / "lib")


def test_http_auth_store_and_checkpointer_are_kept(project: Project, tmp_path: Path) -> None:
    manifest = project(
        http={
            "app": "./app.py:app",
            "configurable_headers": {"includes": ["x-team-*"], "excludes": ["x-team-key"]},
            "cors": {"allow_origins": ["https://a.example"]},
            "disable_mcp": True,
            "disable_a2a": False,
        },
        auth={"path": "./auth.py:auth", "disable_studio_auth": True},
        store={"index": {"dims": 3, "embed": "./embed.py:embed"}},
        checkpointer={"ttl": {"default_ttl": 60}, "serde": {"allowed_msgpack_modules": [["my_agent.models", "Plan"]]}},
    )
    assert manifest.http.app is not None
    assert manifest.http.app.file == tmp_path / "app.py"
    assert (manifest.http.include_headers, manifest.http.exclude_headers) == (("x-team-*",), ("x-team-key",))
    assert manifest.http.cors == {"allow_origins": ["https://a.example"]}
    assert manifest.http.disabled == frozenset({"mcp"})
    assert manifest.auth is not None
    assert (manifest.auth.source.attribute, manifest.auth.disable_studio_auth) == ("auth", True)
    assert manifest.store["index"]["dims"] == 3
    assert manifest.checkpointer["ttl"] == {"default_ttl": 60}
    assert manifest.checkpoint_types == ("my_agent.models:Plan",)


def test_store_ttl_of_the_manifest_is_read(project: Project) -> None:
    assert project().memory == MemorySection(None, True)
    ttl = {"default_ttl": 1.5, "refresh_on_read": False, "sweep_interval_minutes": 5}
    assert project(store={"ttl": ttl}).memory == MemorySection(1.5, False)


def test_unknown_keys_are_ignored_with_a_debug_line(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "assent.runs.project.manifest"):
        project(image_distro="wolfi", http={"future": 1})
    assert "image_distro is not used" in caplog.text
    assert "http.future is not used" in caplog.text


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"graphs": []}, "graphs must be an object, not a list"),
        ({"graphs": {"a": 1}}, 'graphs.a must be "path.py:name" or an object with a "path", not a number'),
        ({"graphs": {"a": "./a.py"}}, "graphs.a must name a file or module and an object, not './a.py'"),
        ({"graphs": {"a": {"path": None}}}, "graphs.a.path must name a file or module and an object, not None"),
        ({"graphs": {"a": {"path": "./a.py:g", "description": 1}}}, "graphs.a.description must be a string"),
        ({"graphs": {"a/b": "./a.py:g"}}, "graphs.a/b is not a usable name"),
        ({"env": 1}, "env must be an object or the path of a .env file, not a number"),
        ({"env": {"A": None}}, "env.A must be a string, not null"),
        ({"dependencies": "."}, "dependencies must be a list, not a string"),
        ({"dependencies": [1]}, r"dependencies\[0\] must be a string, not a number"),
        ({"dependencies": ["./gone"]}, r"dependencies\[0\]: there is no folder './gone'"),
        ({"http": {"app": "app"}}, "http.app must name a file or module and an object, not 'app'"),
        ({"http": {"disable_mcp": "yes"}}, "http.disable_mcp must be true or false, not a string"),
        ({"http": {"configurable_headers": {"includes": "x"}}}, "http.configurable_headers.includes must be a list"),
        ({"auth": {"disable_studio_auth": True}}, "auth.path must name a file or module and an object, not None"),
        ({"store": []}, "store must be an object, not a list"),
        ({"store": {"ttl": 60}}, "store.ttl must be an object, not a number"),
        ({"store": {"ttl": {"default_ttl": 0}}}, "store.ttl.default_ttl must be a number of minutes, not 0"),
        ({"store": {"ttl": {"refresh_on_read": 1}}}, "store.ttl.refresh_on_read must be true or false, not a number"),
        ({"checkpointer": {"serde": {"pickle_fallback": True}}}, "checkpointer.serde.pickle_fallback must not be true"),
        (
            {"checkpointer": {"serde": {"allowed_msgpack_modules": True}}},
            "checkpointer.serde.allowed_msgpack_modules must not be true",
        ),
        ({"checkpointer": {"serde": {"allowed_msgpack_modules": ["Plan"]}}}, "allowed_msgpack_modules must hold pairs"),
    ],
)
def test_a_wrong_value_is_named_by_its_key(project: Project, document: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError, match=f"^(checkpointer.serde.)?{message}"):
        project(**document)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not JSON"), ("[]", "must hold a JSON object, not a list"), ("{}", "graphs is missing")],
)
def test_invalid_manifest_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "langgraph.json").write_text(text)
    with pytest.raises(ManifestError, match=message):
        read_manifest(tmp_path / "langgraph.json")


def test_missing_manifest_is_reported_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="No such file") as caught:
        read_manifest(tmp_path / "langgraph.json")
    assert caught.value.hint
