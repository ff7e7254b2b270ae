"""langgraph.json: what is read, what is ignored, and that a wrong value is named by its key."""

from __future__ import annotations

import ast
import logging
from pathlib import Path
from typing import Any

import pytest

from assent.errors import ManifestError
from assent.runs.headers import HeaderRules
from assent.runs.project.manifest import KNOWN, Cors, read_manifest
from assent.threads.model.threads import Lifetime, Thinning, ThreadSweep
from assent.threads.rows.memory.items import MemorySection
from tests.missing import missing
from tests.unit.engine.conftest import Project

REFERENCE = Path(__file__).parents[3] / ".tools" / "reference"


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
    assert manifest.http.headers == HeaderRules(("x-team-*",), ("x-team-key",))
    assert manifest.http.cors == Cors(("https://a.example",))
    assert manifest.http.disabled == frozenset({"mcp"})
    assert manifest.auth is not None
    assert (manifest.auth.source.attribute, manifest.auth.disable_studio_auth) == ("auth", True)
    assert manifest.store["index"]["dims"] == 3
    assert manifest.sweep == ThreadSweep(Lifetime(60))
    assert manifest.checkpoint_types == ("my_agent.models:Plan",)


def test_store_ttl_of_the_manifest_is_read(project: Project) -> None:
    assert project().memory == MemorySection(None, True)
    ttl = {"default_ttl": 1.5, "refresh_on_read": False, "sweep_interval_minutes": 5}
    assert project(store={"ttl": ttl}).memory == MemorySection(1.5, False)


def test_checkpointer_ttl_of_the_manifest_is_read(project: Project) -> None:
    assert project().sweep == ThreadSweep()
    ttl = {"strategy": "keep_latest", "default_ttl": 1.5, "sweep_interval_minutes": 5, "sweep_limit": 10}
    assert project(checkpointer={"ttl": ttl}).sweep == ThreadSweep(Lifetime(1.5, Thinning.KEEP_LATEST), 5, 10)


def test_built_user_interface_is_found(project: Project, tmp_path: Path) -> None:
    assert project({"ui.js": ""}, ui={"agent": "./ui.js"}).ui == {"agent": tmp_path / "ui.js"}


SECTIONS = {
    "Config": "",
    "HttpConfig": "http",
    "CorsConfig": "http.cors",
    "ConfigurableHeaderConfig": "http.configurable_headers",
    "AuthConfig": "auth",
    "SecurityConfig": "auth.openapi",
    "CheckpointerConfig": "checkpointer",
    "ThreadTTLConfig": "checkpointer.ttl",
    "SerdeConfig": "checkpointer.serde",
    "StoreConfig": "store",
    "TTLConfig": "store.ttl",
    "IndexConfig": "store.index",
    "WebhooksConfig": "webhooks",
    "WebhookUrlPolicy": "webhooks.url",
    "GraphDef": "graphs.*",
}
"""The classes of LangGraph's schema, and where they are in `langgraph.json`."""

WHOLE = {"CacheConfig", "EncryptionConfig", "PriorityConfig", "UvSource"}
"""Those that are refused or ignored as a whole, whatever they have inside."""


def _fields(schema: ast.ClassDef) -> set[str]:
    lines = [line.target for line in schema.body if isinstance(line, ast.AnnAssign)]
    return {target.id for target in lines if isinstance(target, ast.Name)}


def test_every_field_of_the_reference_is_honoured_or_refused() -> None:
    """A field or section that a newer reference adds fails here, until someone decides what it means."""
    file = next(REFERENCE.glob("lib/*/site-packages/langgraph_cli/schemas.py"), None)
    if file is None:
        missing("the reference server: make .tools/reference/.stamp")
    schemas = {part.name: _fields(part) for part in ast.parse(file.read_text()).body if isinstance(part, ast.ClassDef)}
    assert schemas.keys() == {*SECTIONS, *WHOLE}
    known = {name: KNOWN[key] - {"disable_event_streaming"} for name, key in SECTIONS.items()}
    assert {name: schemas[name] for name in SECTIONS} == known


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
        ({"encryption": {"path": "./e.py:e"}}, "encryption is not supported"),
        ({"priority": {"path": "./p.py:p"}}, "priority is not supported"),
        ({"auth": {"path": "./a.py:a", "cache": {"ttl_seconds": 1}}}, "auth.cache is not supported"),
        ({"auth": {"path": "./a.py:a", "openapi": {"security": {}}}}, "auth.openapi.security must be a list"),
        ({"http": {"disable_everything": True}}, "http.disable_everything is not supported"),
        ({"http": {"middleware_order": "middleware_first"}}, "http.middleware_order 'middleware_first' is not"),
        ({"http": {"mount_prefix": "api/"}}, "http.mount_prefix 'api/' must begin with '/'"),
        ({"http": {"logging_headers": {"includes": 1}}}, "http.logging_headers.includes must be a list"),
        ({"http": {"cors": {"allow_credentials": True}}}, "http.cors.allow_credentials is not supported"),
        ({"http": {"cors": {"allow_origin_regex": "("}}}, "http.cors.allow_origin_regex is not a regular expression"),
        ({"http": {"cors": {"max_age": "1"}}}, "http.cors.max_age must be a number, not a string"),
        ({"ui": {"a": "./ui.tsx"}}, "ui.a: ./ui.tsx is not built"),
        ({"ui": {"a": "./gone.js"}}, "ui.a: there is no file ./gone.js"),
        ({"ui": {"a": 1}}, "ui.a must be the path of a file, not a number"),
        ({"store": {"ttl": {"sweep_interval_minutes": -1}}}, "store.ttl.sweep_interval_minutes must be a number of"),
        ({"checkpointer": {"path": "./c.py:c"}}, "checkpointer.path is not supported"),
        ({"checkpointer": {"ttl": {"strategy": "forget"}}}, "checkpointer.ttl.strategy is 'forget'"),
        ({"checkpointer": {"ttl": {"default_ttl": 0}}}, "checkpointer.ttl.default_ttl must be a number of minutes"),
        ({"checkpointer": {"ttl": {"sweep_limit": 0}}}, "checkpointer.ttl.sweep_limit must be a positive number"),
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
