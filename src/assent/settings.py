"""One frozen `Settings`, and the only code that reads the environment and configuration files.

A value comes from, in rising order: its default, `assent.toml`, the environment (`ASSENT_<NAME>`), the command line.
`load` remembers which, so that `assent config` can say where each value comes from, and names what is wrong with one.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from assent.domain.addresses import LOOPBACK, Allowed
from assent.domain.items import LONGEST_GRACE
from assent.domain.runs import Strategy
from assent.errors import ConfigError, Invalid

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LISTS = frozenset({"allowed_hosts", "cors_origins", "trusted_proxies", "outbound_allow", "checkpoint_types"})
_LONGEST = timedelta(days=36_500)
_FILE_VARIABLE = "ASSENT_SETTINGS"

DEMO_PORT = 8002
OFFLINE = "offline"
DEMO_ASSISTANT = "assistant"
DEMO_PROJECT = Path(__file__).parent / "demo" / "langgraph.json"
LOOPBACK_ORIGIN = r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"


def _duration(value: Any) -> Any:
    """Accepts `90s`, `15m`, `12h`, `7d`, plain seconds, or what pydantic knows (ISO 8601)."""
    found = re.fullmatch(r"(\d{1,9})([smhd])", value.strip()) if isinstance(value, str) else None
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else value


def _database(value: Any) -> str:
    try:
        url = make_url(str(value))
    except ArgumentError:
        raise ValueError("not a URL; use sqlite:///path or postgresql://…") from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(f"{url.get_backend_name()!r} is not supported; use sqlite:///path or postgresql://…")
    return str(value)


def _hard_to_guess(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < 32:
        raise ValueError("at least 32 characters, such as `openssl rand -base64 32` prints")
    return value


def _web_address(value: str) -> str:
    """Where a server is; a password in it would end up in messages and logs."""
    found = urlsplit(value)
    if found.scheme not in ("http", "https") or not found.hostname or found.username or found.query or found.fragment:
        raise ValueError("use http://host:port or https://host")
    return value.rstrip("/")


def _targets(value: tuple[str, ...]) -> tuple[str, ...]:
    try:
        Allowed.named(value)
    except Invalid as error:
        raise ValueError(f"{error.message}; {error.hint}") from None
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration), Field(gt=timedelta(), le=_LONGEST)]
Grace = Annotated[timedelta, BeforeValidator(_duration), Field(ge=timedelta(), le=LONGEST_GRACE)]


def parse_duration(text: str) -> timedelta:
    found = _duration(text)
    if not isinstance(found, timedelta) or not timedelta() < found <= _LONGEST:
        raise Invalid(f"{text!r} is not a length of time", hint="such as 90s, 15m, 12h or 7d, at most 36500d")
    return found


class Mode(StrEnum):
    """Which command runs: `dev` and `demo` serve loopback callers without a key, `serve` never does."""

    DEV = "dev"
    DEMO = "demo"
    SERVE = "serve"


class Settings(BaseModel):
    """Every setting there is. Documented one by one in docs/settings.md, which a test compares with this class."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = Mode.DEV
    config: Path = Path("langgraph.json")
    policy: Path | None = None
    assistant: Annotated[str, Field(max_length=200)] | None = None
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 2024
    database: Annotated[str, BeforeValidator(_database)] = "sqlite:///.assent/assent.db"
    database_connections: Annotated[int, Field(ge=1, le=500)] = 10
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_body_bytes: Annotated[int, Field(ge=1024)] = 20 * 1024 * 1024
    max_open_requests: Annotated[int, Field(ge=10)] = 10_000
    session_lifetime: Duration = timedelta(days=7)
    undo_window: Grace = timedelta(seconds=5)
    secret_key: Annotated[SecretStr, AfterValidator(_hard_to_guess)] | None = None
    url: Annotated[str, AfterValidator(_web_address)] = "http://127.0.0.1:2024"
    api_key: SecretStr | None = None
    outbound_allow: Annotated[tuple[str, ...], AfterValidator(_targets)] = ()
    default_multitask_strategy: Strategy = Strategy.REJECT
    run_timeout: Duration = timedelta(days=1)
    run_concurrency: Annotated[int, Field(ge=1, le=10_000)] = 32
    run_in_server: bool = True
    run_patience: Duration = timedelta(seconds=10)
    run_attempts: Annotated[int, Field(ge=1)] = 100
    checkpoint_types: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    retention_event_payloads: Duration | None = None
    retention_frames: Duration = timedelta(hours=1)
    retention_deliveries: Duration = timedelta(days=30)
    retention_items: Duration | None = None

    @property
    def database_shown(self) -> str:
        """The database's address without its secrets, wherever they stand in it."""
        url = make_url(self.database)
        query = {name: "***" if "password" in name.lower() else value for name, value in url.query.items()}
        return url.set(query=query).render_as_string(hide_password=True)

    @property
    def database_file(self) -> Path | None:
        """The file of a SQLite database; None where there is none to look for."""
        url = make_url(self.database)
        named = url.database if url.get_backend_name() == "sqlite" else None
        return Path(named) if named and named != ":memory:" else None

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def may_call(self) -> Allowed:
        """Whom this server may call besides public addresses. One that only this machine can reach may call it back:
        the receiver under development runs here too, and whoever asks for it could call it without us."""
        local = LOOPBACK if self.mode is not Mode.SERVE and self.on_loopback else ()
        return Allowed.named((*self.outbound_allow, *local))


def _mcp_address(value: str) -> str:
    found = urlsplit(value)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise ValueError("use http://host:port/mcp or https://host/mcp")
    return value


def _list_or_json(value: Any) -> Any:
    """`a, b` or `["a", "b"]`."""
    return _json(value) if isinstance(value, str) and value.lstrip().startswith("[") else _listed(value)


def _json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}") from None


def _listed(value: Any) -> Any:
    return _split(value) if isinstance(value, str) else value


class AssistantSettings(BaseModel):
    """What the reference assistant works with. Its variables have names of their own; see docs/assistant.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mcp_url: Annotated[str, AfterValidator(_mcp_address)] | None = None
    mcp_command: str | None = None
    mcp_headers: Annotated[dict[str, SecretStr], BeforeValidator(_json)] = Field(default_factory=dict)
    mcp_env: Annotated[dict[str, SecretStr], BeforeValidator(_json)] = Field(default_factory=dict)
    mcp_mode: Literal["auto", "legacy", "2026-07-28"] = "auto"
    calendar: Path = Path(".assent/calendar.db")
    tool_mapping: Annotated[dict[str, tuple[str, ...]] | None, BeforeValidator(_json)] = None
    hitl_tools: Annotated[tuple[str, ...] | None, BeforeValidator(_list_or_json)] = None
    model: str = OFFLINE
    router_model: str | None = None
    executor_model: str | None = None
    model_url: Annotated[str, AfterValidator(_web_address)] | None = None
    openai_api_key: SecretStr | None = None
    google_api_key: SecretStr | None = None
    langfuse_public_key: SecretStr | None = None
    langfuse_secret_key: SecretStr | None = None
    langfuse_host: str | None = None
    otlp_endpoint: Annotated[str, AfterValidator(_web_address)] | None = None


_ASSISTANT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    **{
        name: (f"ASSISTANT_{name.upper()}",)
        for name in (
            *("mcp_url", "mcp_command", "mcp_headers", "mcp_env", "mcp_mode"),
            *("calendar", "tool_mapping", "hitl_tools"),
        )
    },
    **{name: (f"ASSISTANT_{name.upper()}",) for name in ("model", "router_model", "executor_model", "model_url")},
    "openai_api_key": ("OPENAI_API_KEY",),
    "google_api_key": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "langfuse_public_key": ("LANGFUSE_PUBLIC_KEY",),
    "langfuse_secret_key": ("LANGFUSE_SECRET_KEY",),
    "langfuse_host": ("LANGFUSE_HOST", "LANGFUSE_BASE_URL"),
    "otlp_endpoint": ("OTEL_EXPORTER_OTLP_ENDPOINT",),
}


def read_assistant_settings(environment: Mapping[str, str] | None = None) -> AssistantSettings:
    """An empty variable counts as one that is not set: that is how `.env` files leave things out."""
    environment = os.environ if environment is None else environment
    found: dict[str, tuple[Any, str]] = {}
    for name, variables in _ASSISTANT_VARIABLES.items():
        variable = next((one for one in variables if environment.get(one, "").strip()), None)
        if variable is not None:
            found[name] = (environment[variable].strip(), variable)
    try:
        return AssistantSettings(**{name: value for name, (value, _) in found.items()})
    except ValidationError as error:
        raise ConfigError("; ".join(_complaints(error, found)), hint="see docs/assistant.md") from None


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings in force, and where each one comes from: `default`, a file, an environment variable or an option."""

    settings: Settings
    origins: Mapping[str, str]
    remarks: tuple[str, ...] = ()


def load(
    options: Mapping[str, Any], environment: Mapping[str, str] | None = None, *, folder: Path | None = None
) -> Loaded:
    """Reads the layers, lowest first. `options` are what the command line gave; None stands for not given."""
    environment = os.environ if environment is None else environment
    folder = folder or Path.cwd()
    layers = [
        _from_file(environment, folder),
        _from_environment(environment),
        {name: (value, "command line") for name, value in options.items() if value is not None},
    ]
    found: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        found.update(layer)
    settings = _validated(found)
    origins = {name: found[name][1] if name in found else "default" for name in Settings.model_fields}
    return Loaded(_with_derived_defaults(settings, found), origins, _strangers(environment))


def _from_file(environment: Mapping[str, str], folder: Path) -> dict[str, tuple[Any, str]]:
    named = environment.get(_FILE_VARIABLE)
    path = folder / (named or "assent.toml")
    if not path.exists():
        if named:
            raise ConfigError(f"{_FILE_VARIABLE} names {named}, which does not exist")
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path.name} cannot be read: {error.strerror}") from None
    return {name: (value, path.name) for name, value in values.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for variable, value in environment.items():
        name = variable.removeprefix("ASSENT_").lower()
        if variable.startswith("ASSENT_") and name in Settings.model_fields:
            found[name] = (_split(value) if name in _LISTS else value, variable)
    return found


def _strangers(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Says which `ASSENT_` variables are no settings. One that is nearly the name of a setting stops the start."""
    strangers = sorted(name for name in environment if name.startswith("ASSENT_") and not _is_known(name))
    for variable in strangers:
        if near := _nearest(variable.removeprefix("ASSENT_").lower()):
            raise ConfigError(f"{variable} is not a setting", hint=f"did you mean ASSENT_{near.upper()}?")
    return tuple(f"{variable} is not a setting and has no effect" for variable in strangers)


def _is_known(variable: str) -> bool:
    return variable == _FILE_VARIABLE or variable.removeprefix("ASSENT_").lower() in Settings.model_fields


def _nearest(name: str) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(Settings.model_fields), n=1, cutoff=0.75)), None)


def _split(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _validated(found: Mapping[str, tuple[Any, str]]) -> Settings:
    try:
        return Settings(**{name: value for name, (value, _) in found.items()})
    except ValidationError as error:
        raise ConfigError("; ".join(_complaints(error, found)), hint="see docs/settings.md") from None


def _complaints(error: ValidationError, found: Mapping[str, tuple[Any, str]]) -> list[str]:
    """One clause per wrong value: its name, where it came from, what is wrong. Never the value: it may be a secret."""
    said = []
    for problem in error.errors(include_url=False, include_input=False):
        name = str(problem["loc"][0])
        origin = found[name][1] if name in found else "default"
        unknown = problem["type"] == "extra_forbidden"
        what = _unknown(name) if unknown else problem["msg"].removeprefix("Value error, ")
        said.append(f"{name} (from {origin}): {what}")
    return said


def _unknown(name: str) -> str:
    near = _nearest(name)
    return f"is not a setting; did you mean {near}?" if near else "is not a setting"


def _with_derived_defaults(settings: Settings, found: Mapping[str, tuple[Any, str]]) -> Settings:
    """The demo has graphs, a port and a file of its own; otherwise the database lies under `.assent/` beside the graph
    configuration, wherever the command was started."""
    derived: dict[str, Any] = {"database": f"sqlite:///{settings.config.parent / '.assent' / 'assent.db'}"}
    if settings.mode is Mode.DEMO:
        derived = {"database": "sqlite:///.assent/demo.db", "port": DEMO_PORT, "config": DEMO_PROJECT}
        derived["assistant"] = DEMO_ASSISTANT
    return settings.model_copy(update={name: value for name, value in derived.items() if name not in found})
