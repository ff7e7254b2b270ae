"""Reads `langgraph.json` into a frozen manifest.

The file is written for another server, so reading is lenient if that is safe (unknown keys and those of its image are
ignored with a debug line, a missing `.env` is a warning) and strict otherwise: a value of the wrong type, an unsafe
checkpoint setting, and a field that Assent does not support are errors that name their key. Reading imports nothing
and does not change the environment: `loader` does.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assent.errors import ManifestError
from assent.runs.headers import HeaderRules
from assent.threads.model.threads import Lifetime, Thinning, ThreadSweep
from assent.threads.rows.memory.items import MemorySection

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """The location of an author's object: `./agent.py:graph` or `my_agent.graphs:graph`."""

    text: str
    attribute: str
    file: Path | None = None
    module: str | None = None


@dataclass(frozen=True, slots=True)
class GraphEntry:
    name: str
    source: ObjectPath
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Cors:
    """Rules for pages of other origins, added to those of the setting `cors_origins`."""

    origins: tuple[str, ...] = ()
    origin_regex: str | None = None
    methods: tuple[str, ...] = ("*",)
    headers: tuple[str, ...] = ("*",)
    exposed: tuple[str, ...] = ()
    max_age: int = 600


@dataclass(frozen=True, slots=True)
class HttpSection:
    app: ObjectPath | None = None
    headers: HeaderRules = field(default_factory=HeaderRules)
    cors: Cors = Cors()
    disabled: frozenset[str] = frozenset()
    mount_prefix: str = ""
    custom_route_auth: bool = True
    """LangGraph's own server leaves custom routes open by default; here they are open only if the project sets this."""


@dataclass(frozen=True, slots=True)
class AuthSection:
    source: ObjectPath
    disable_studio_auth: bool = False
    """Accepted and always in effect: `x-auth-scheme: langsmith` gives no access."""
    openapi: Mapping[str, Any] = field(default_factory=dict)
    """The security of the author's handlers, for the OpenAPI document."""


@dataclass(frozen=True, slots=True)
class IndexSection:
    """The index of the store. `provider` or `source` is its embedding."""

    dims: int
    fields: tuple[str, ...]
    provider: str | None = None
    source: ObjectPath | None = None

    @property
    def name(self) -> str:
        return self.provider or (self.source.text if self.source else "")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One project. `roots`: the folders of its imports, the project's own first."""

    root: Path
    graphs: Mapping[str, GraphEntry] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[Path, ...] = ()
    http: HttpSection = HttpSection()
    auth: AuthSection | None = None
    store: Mapping[str, Any] = field(default_factory=dict)
    memory: MemorySection = field(default_factory=MemorySection)
    index: IndexSection | None = None
    sweep: ThreadSweep = field(default_factory=ThreadSweep)
    checkpoint_types: tuple[str, ...] = ()
    webhooks: Mapping[str, Any] = field(default_factory=dict)
    ui: Mapping[str, Path] = field(default_factory=dict)
    """Graph → the built file of its user interface."""


_USED = frozenset({"graphs", "env", "dependencies", "http", "auth", "store", "checkpointer", "webhooks", "ui"})
_REFUSED = {
    "encryption": "encrypt the database's disk instead",
    "priority": "runs are executed in the order of their creation",
    "checkpointer.path": "Assent stores checkpoints in its own database",
    "auth.cache": "every request is authenticated",
    "http.cors.allow_credentials": "cookies give no access to other origins; their pages send a key",
}
_USED_HTTP = frozenset(
    {
        "app",
        "configurable_headers",
        "logging_headers",
        "cors",
        "mount_prefix",
        "enable_custom_route_auth",
        "middleware_order",
    }
)
PARTS = frozenset({"assistants", "threads", "runs", "store", "mcp", "a2a", "meta", "ui", "webhooks", "event_streaming"})
"""The routes that `http.disable_*` switches off."""

_OF_THE_IMAGE = frozenset(
    {
        "python_version",
        "node_version",
        "api_version",
        "_INTERNAL_docker_tag",
        "base_image",
        "image_distro",
        "pip_config_file",
        "pip_installer",
        "source",
        "dockerfile_lines",
        "keep_pkg_tools",
    }
)
"""How `langgraph build` makes an image: nothing that a server does."""

KNOWN: Mapping[str, frozenset[str]] = {
    "": _USED | _OF_THE_IMAGE | {"encryption", "priority"},
    "graphs.*": frozenset({"path", "description"}),
    "http": _USED_HTTP | {f"disable_{part}" for part in PARTS},
    "http.cors": frozenset(
        {
            "allow_origins",
            "allow_methods",
            "allow_headers",
            "allow_credentials",
            "allow_origin_regex",
            "expose_headers",
            "max_age",
        }
    ),
    "http.configurable_headers": frozenset({"includes", "excludes"}),
    "auth": frozenset({"path", "disable_studio_auth", "openapi", "cache"}),
    "auth.openapi": frozenset({"securitySchemes", "security", "paths"}),
    "checkpointer": frozenset({"path", "ttl", "serde"}),
    "checkpointer.ttl": frozenset({"strategy", "default_ttl", "sweep_interval_minutes", "sweep_limit"}),
    "checkpointer.serde": frozenset({"allowed_msgpack_modules", "allowed_json_modules", "pickle_fallback"}),
    "store": frozenset({"index", "ttl"}),
    "store.index": frozenset({"dims", "embed", "fields"}),
    "store.ttl": frozenset({"refresh_on_read", "default_ttl", "sweep_interval_minutes"}),
    "webhooks": frozenset({"env_prefix", "url", "headers"}),
    "webhooks.url": frozenset(
        {"require_https", "allowed_domains", "allowed_ports", "max_url_length", "disable_loopback"}
    ),
}
"""The fields of each section that have a meaning here: honoured, refused by name, or of the image."""

_BUILT = (".js", ".mjs")
_MOST_DIMENSIONS = 16_000
_GRAPH_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def read_manifest(path: Path) -> Manifest:
    """Reads the file at `path`; paths inside it are relative to its folder."""
    document = _document(path)
    root = path.resolve().parent
    _refuse_unsupported(document)
    _note_unknown(document, _USED, "")
    for key, fields in KNOWN.items():
        if key and isinstance(part := _at(document, key), Mapping):
            _note_unknown(part, fields, f"{key}.")
    return Manifest(
        root=root,
        graphs=_graphs(document, root),
        env=_env(document, root),
        roots=_roots(document, root),
        http=_http(document, root),
        auth=_auth(document, root),
        store=_persistence(document, "store"),
        memory=_memory(_section(document, "store")),
        index=_index(_section(document, "store"), root),
        sweep=_sweep(_typed(_section(document, "checkpointer"), "ttl", dict, {}, "checkpointer")),
        checkpoint_types=_checkpoint_types(document),
        webhooks=_section(document, "webhooks"),
        ui=_ui(document, root),
    )


def sources_of(path: Path) -> tuple[Path, ...]:
    """The folders of a project and its `.env` file; only the root if the file at `path` is invalid."""
    root = path.resolve().parent
    try:
        document = _document(path)
        env = document.get("env")
        return (*_roots(document, root), *([(root / env).resolve()] if isinstance(env, str) else []))
    except ManifestError:
        return (root,)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        raise ManifestError(f"{path} cannot be read: {exc.strerror}", hint="name a langgraph.json file") from exc
    except ValueError as exc:
        raise ManifestError(f"{path} is not JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise ManifestError(f"{path} must hold a JSON object, not {_kind(document)}")
    return document


def _graphs(document: Mapping[str, Any], root: Path) -> dict[str, GraphEntry]:
    if "graphs" not in document:
        raise ManifestError("graphs is missing", hint='add "graphs": {"agent": "./agent.py:graph"}')
    return {name: _graph(name, value, root) for name, value in _typed(document, "graphs", dict, {}).items()}


def _graph(name: str, value: Any, root: Path) -> GraphEntry:
    key = f"graphs.{name}"
    if not _GRAPH_NAME.fullmatch(name):
        raise ManifestError(f"{key} is not a usable name", hint="letters, digits, '_', '-' and '.', at most 64 of them")
    if isinstance(value, str):
        return GraphEntry(name, _object_path(value, key, root))
    if not isinstance(value, dict) or "path" not in value:
        raise ManifestError(f'{key} must be "path.py:name" or an object with a "path", not {_kind(value)}')
    source = _object_path(value["path"], f"{key}.path", root)
    return GraphEntry(name, source, _typed(value, "description", str, None, key))


def _object_path(value: Any, key: str, root: Path) -> ObjectPath:
    place, _, attribute = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not place or not attribute.isidentifier():
        raise ManifestError(f"{key} must name a file or module and an object, not {value!r}", hint="./agent.py:graph")
    if "/" in place or "\\" in place or place.endswith(".py"):
        return ObjectPath(value, attribute, file=(root / place).resolve())
    return ObjectPath(value, attribute, module=place)


def _env(document: Mapping[str, Any], root: Path) -> dict[str, str]:
    value = document.get("env") or {}
    if isinstance(value, str):
        return _env_file(root / value)
    if not isinstance(value, dict):
        raise ManifestError(f"env must be an object or the path of a .env file, not {_kind(value)}")
    for name, text in value.items():
        if not isinstance(text, str):
            raise ManifestError(f"env.{name} must be a string, not {_kind(text)}")
    return value


def _env_file(path: Path) -> dict[str, str]:
    """Values are not interpolated: a password may contain a `$`."""
    from dotenv import dotenv_values

    if not path.is_file():
        log.warning("env: %s does not exist; continuing without it", path)
        return {}
    return {name: value for name, value in dotenv_values(path, interpolate=False).items() if value is not None}


def _roots(document: Mapping[str, Any], root: Path) -> tuple[Path, ...]:
    roots = [root]
    for position, text in enumerate(_strings(document, "dependencies")):
        folder = (root / text).resolve()
        if folder.is_dir():
            roots.append(folder)
        elif text.startswith((".", "/")):
            raise ManifestError(f"dependencies[{position}]: there is no folder {text!r}")
        else:
            log.debug("dependencies: %r is a package; it is expected to be installed", text)
    return tuple(dict.fromkeys(roots))


def _http(document: Mapping[str, Any], root: Path) -> HttpSection:
    section = _section(document, "http")
    flags = {key for key in section if key.startswith("disable_")}
    if unknown := {flag for flag in flags if flag.removeprefix("disable_") not in PARTS}:
        raise ManifestError(f"http.{min(unknown)} is not supported", hint=f"one of: {', '.join(sorted(PARTS))}")
    if section.get("middleware_order") not in (None, "auth_first"):
        raise ManifestError(
            f"http.middleware_order {section['middleware_order']!r} is not supported",
            hint="auth_first: every request is authenticated before the author's app sees it",
        )
    _header_rules(section, "logging_headers")  # checked only: no header is logged
    return HttpSection(
        app=_object_path(section["app"], "http.app", root) if section.get("app") is not None else None,
        headers=_header_rules(section, "configurable_headers"),
        cors=_cors(_typed(section, "cors", dict, {}, "http")),
        disabled=frozenset(flag[len("disable_") :] for flag in flags if _typed(section, flag, bool, False, "http")),
        mount_prefix=_prefix(_typed(section, "mount_prefix", str, "", "http")),
        custom_route_auth=_typed(section, "enable_custom_route_auth", bool, True, "http"),
    )


def _prefix(text: str) -> str:
    if text and (not text.startswith("/") or text.endswith("/")):
        raise ManifestError(f"http.mount_prefix {text!r} must begin with '/' and not end with it", hint="/my-api")
    return text


def _header_rules(section: Mapping[str, Any], key: str) -> HeaderRules:
    rules = _typed(section, key, dict, {}, "http")
    return HeaderRules(_strings(rules, "includes", f"http.{key}"), _strings(rules, "excludes", f"http.{key}"))


def _cors(section: Mapping[str, Any]) -> Cors:
    within = "http.cors"
    regex = _typed(section, "allow_origin_regex", str, None, within)
    try:
        re.compile(regex or "")
    except re.error as error:
        raise ManifestError(f"{within}.allow_origin_regex is not a regular expression: {error}") from None
    return Cors(
        origins=_strings(section, "allow_origins", within),
        origin_regex=regex,
        methods=_strings(section, "allow_methods", within) or ("*",),
        headers=_strings(section, "allow_headers", within) or ("*",),
        exposed=_strings(section, "expose_headers", within),
        max_age=_typed(section, "max_age", int, 600, within),
    )


def _ui(document: Mapping[str, Any], root: Path) -> dict[str, Path]:
    return {name: _built(name, value, root) for name, value in _typed(document, "ui", dict, {}).items()}


def _built(name: str, value: Any, root: Path) -> Path:
    """Assent serves files that the author has built; it runs no bundler."""
    if not isinstance(value, str):
        raise ManifestError(f"ui.{name} must be the path of a file, not {_kind(value)}")
    file = (root / value).resolve()
    if file.suffix not in _BUILT:
        raise ManifestError(f"ui.{name}: {value} is not built", hint="build it, and name the built .js file")
    if not file.is_file():
        raise ManifestError(f"ui.{name}: there is no file {value}")
    return file


def _auth(document: Mapping[str, Any], root: Path) -> AuthSection | None:
    section = _section(document, "auth")
    if not section:
        return None
    source = _object_path(section.get("path"), "auth.path", root)
    shown = _typed(section, "openapi", dict, {}, "auth")
    for key, kind in (("securitySchemes", dict), ("security", list), ("paths", dict)):
        _typed(shown, key, kind, None, "auth.openapi")
    return AuthSection(source, _typed(section, "disable_studio_auth", bool, False, "auth"), shown)


def _checkpoint_types(document: Mapping[str, Any]) -> tuple[str, ...]:
    """`[["my_agent.models", "Plan"]]` becomes `("my_agent.models:Plan",)`, the form of our own setting."""
    serde = _typed(_section(document, "checkpointer"), "serde", dict, {}, "checkpointer")
    key = "checkpointer.serde.allowed_msgpack_modules"
    for unsafe in ("pickle_fallback", "allowed_msgpack_modules", "allowed_json_modules"):
        if serde.get(unsafe) is True:
            raise ManifestError(f"checkpointer.serde.{unsafe} must not be true", hint=f"list single types in {key}")
    listed = _typed(serde, "allowed_msgpack_modules", list, [], "checkpointer.serde")
    for entry in listed:
        if not isinstance(entry, list) or len(entry) < 2 or not all(isinstance(part, str) for part in entry):
            raise ManifestError(f"{key} must hold pairs, not {entry!r}", hint='[["my_agent.models", "Plan"]]')
    return tuple(f"{'.'.join(entry[:-1])}:{entry[-1]}" for entry in listed)


def _index(store: Mapping[str, Any], root: Path) -> IndexSection | None:
    section = _typed(store, "index", dict, {}, "store")
    if not section:
        return None
    dims, embed = section.get("dims"), section.get("embed")
    if isinstance(dims, bool) or not isinstance(dims, int) or not 0 < dims <= _MOST_DIMENSIONS:
        raise ManifestError(f"store.index.dims must be a number from 1 to {_MOST_DIMENSIONS}, not {dims!r}")
    if not isinstance(embed, str) or ":" not in embed:
        raise ManifestError(
            f"store.index.embed must name a provider or a function, not {embed!r}",
            hint="openai:text-embedding-3-small, or ./embeddings.py:embed",
        )
    fields = _strings(section, "fields", "store.index") or ("$",)
    if ".py:" not in embed:
        return IndexSection(dims, fields, provider=embed)
    return IndexSection(dims, fields, source=_object_path(embed, "store.index.embed", root))


def _memory(section: Mapping[str, Any]) -> MemorySection:
    ttl = _typed(section, "ttl", dict, {}, "store")
    minutes = _minutes(ttl, "default_ttl", "store.ttl")
    _minutes(ttl, "sweep_interval_minutes", "store.ttl")  # checked only: an expired item disappears at once
    return MemorySection(minutes, _typed(ttl, "refresh_on_read", bool, True, "store.ttl"))


def _sweep(ttl: Mapping[str, Any]) -> ThreadSweep:
    within = "checkpointer.ttl"
    strategy = _typed(ttl, "strategy", str, Thinning.DELETE.value, within)
    if strategy not in tuple(Thinning):
        raise ManifestError(f"{within}.strategy is {strategy!r}", hint=f"one of: {', '.join(Thinning)}")
    minutes = _minutes(ttl, "default_ttl", within)
    limit = _typed(ttl, "sweep_limit", int, None, within)
    if limit is not None and (isinstance(limit, bool) or limit < 1):
        raise ManifestError(f"{within}.sweep_limit must be a positive number, not {limit!r}")
    return ThreadSweep(
        lifetime=Lifetime(minutes, Thinning(strategy)) if minutes is not None else None,
        every_minutes=_minutes(ttl, "sweep_interval_minutes", within) or ThreadSweep().every_minutes,
        limit=limit,
    )


def _minutes(document: Mapping[str, Any], key: str, within: str) -> float | None:
    value = document.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
        raise ManifestError(f"{within}.{key} must be a number of minutes, not {value!r}")
    return value


def _refuse_unsupported(document: Mapping[str, Any]) -> None:
    for key, hint in _REFUSED.items():
        if _at(document, key):
            raise ManifestError(f"{key} is not supported", hint=hint)


def _at(document: Any, key: str) -> Any:
    """The value at a dotted key; None where there is none."""
    for part in key.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def _persistence(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    section = _section(document, key)
    if "path" in section:
        log.warning("langgraph.json: %s.path is not used; Assent keeps this data in its own database", key)
    return section


def _section(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    section: dict[str, Any] = _typed(document, key, dict, {})
    return section


def _strings(document: Mapping[str, Any], key: str, within: str = "") -> tuple[str, ...]:
    values = _typed(document, key, list, [], within)
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise ManifestError(f"{_path(within, key)}[{position}] must be a string, not {_kind(value)}")
    return tuple(values)


def _typed(document: Mapping[str, Any], key: str, kind: type, default: Any, within: str = "") -> Any:
    """The value at `key`, or `default` when it is absent or null."""
    value = document.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ManifestError(f"{_path(within, key)} must be {_KINDS[kind]}, not {_kind(value)}")
    return value


def _path(within: str, key: str) -> str:
    return f"{within}.{key}" if within else key


_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return _KINDS.get(type(value), "a number")


def _note_unknown(document: Mapping[str, Any], used: frozenset[str], prefix: str) -> None:
    for key in document.keys() - used:
        log.debug("langgraph.json: %s%s is not used", prefix, key)
