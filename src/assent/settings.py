"""One frozen `Settings`, and the only code that reads the environment and configuration files.

A value comes from, in rising order: its default, `assent.toml`, the environment (`ASSENT_<NAME>`), the command line.
`load` records the origin of each value for `assent config`, and reports invalid values.
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
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from assent.errors import ConfigError, Invalid
from assent.identity.model.agents import Source
from assent.kernel.store.drivers.connections import FEWEST
from assent.outbox.addresses import LOOPBACK, Allowed, plain_host
from assent.review.model.items import LONGEST_GRACE
from assent.threads.model.crons import CatchUp
from assent.threads.model.runs import Strategy
from assent.threads.model.threads import Visibility

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LISTS = frozenset({"allowed_hosts", "cors_origins", "trusted_proxies", "outbound_allow", "checkpoint_types"})
_LONGEST = timedelta(days=36_500)
_FILE_VARIABLE = "ASSENT_SETTINGS"
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(:-(?P<default>[^}]*))?\}")

DEMO_PORT = 8002
OFFLINE = "offline"
DEMO_ASSISTANT = "assistant"
DEMO_PROJECT = Path(__file__).parent / "assistant" / "demo" / "langgraph.json"
LOOPBACK_ORIGIN = r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"


def _duration(value: Any) -> Any:
    """Accepts `90s`, `15m`, `12h`, `7d`, plain seconds, or ISO 8601 (by pydantic)."""
    match = re.fullmatch(r"(\d{1,9})([smhd])", value.strip()) if isinstance(value, str) else None
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else value


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
    """The address of a server; a password in it would end up in messages and logs."""
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
        raise ValueError("use http://host:port or https://host")
    return value.rstrip("/")


def _receiver(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname or url.username:
        raise ValueError("use https://host/path")
    return value


def _public_address(value: str) -> str:
    """The address of the pages. Passkeys are bound to its host, so that has to be a domain."""
    url = urlsplit(_web_address(value))
    if url.path.strip("/"):
        raise ValueError("use https://host, without a path")
    if is_ip_address(url.hostname or ""):
        raise ValueError("use a domain such as https://assent.example.com, or http://localhost:2024: not an IP address")
    return f"{url.scheme}://{url.netloc.lower()}"


def _targets(value: tuple[str, ...]) -> tuple[str, ...]:
    try:
        Allowed.named(value)
    except Invalid as error:
        raise ValueError(f"{error.message}; {error.hint}") from None
    return value


class DeploymentSettings(BaseModel):
    """A deployment in `assent.toml`. A key that begins with `$` names an environment variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, AfterValidator(_web_address)]
    name: str = ""
    key: SecretStr | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    graphs: tuple[str, ...] = ()
    stringify_args: bool = False

    @property
    def shown_name(self) -> str:
        return self.name or urlsplit(self.url).netloc

    @property
    def plain_key(self) -> str | None:
        return None if self.key is None else _expanded(self.key.get_secret_value())

    @property
    def plain_headers(self) -> dict[str, str]:
        return {name: _expanded(value.get_secret_value()) for name, value in self.headers.items()}


def _expanded(value: str) -> str:
    if not value.startswith("$"):
        return value
    if value[1:] not in os.environ:
        raise ConfigError(f"deployments: the environment has no variable {value[1:]}")
    return os.environ[value[1:]].strip()


def _distinct(value: tuple[DeploymentSettings, ...]) -> tuple[DeploymentSettings, ...]:
    names = [deployment.shown_name for deployment in value]
    if len(set(names)) < len(names):
        raise ValueError("two deployments have the same name")
    return value


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}") from None


Duration = Annotated[timedelta, BeforeValidator(_duration), Field(gt=timedelta(), le=_LONGEST)]
Grace = Annotated[timedelta, BeforeValidator(_duration), Field(ge=timedelta(), le=LONGEST_GRACE)]


def parse_duration(text: str) -> timedelta:
    duration = _duration(text)
    if not isinstance(duration, timedelta) or not timedelta() < duration <= _LONGEST:
        raise Invalid(f"{text!r} is not a duration", hint="such as 90s, 15m, 12h or 7d, at most 36500d")
    return duration


class Mode(StrEnum):
    """The running command: `dev` and `demo` serve loopback callers without a key, `serve` never does."""

    DEV = "dev"
    DEMO = "demo"
    SERVE = "serve"


class AgentSetting(BaseModel):
    """An agent of the registry, as `assent.toml` names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200)]
    parent: str | None = None
    human: str | None = None
    source: Source = Source.USER


class Settings(BaseModel):
    """All settings. Documented in docs/settings.md, which a test compares with this class."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = Mode.DEV
    config: Path = Path("langgraph.json")
    policy: Path | None = None
    agents: Annotated[tuple[AgentSetting, ...], BeforeValidator(_parsed)] = ()
    assistant: Annotated[str, Field(max_length=200)] | None = None
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 2024
    database: Annotated[str, BeforeValidator(_database)] = "sqlite:///.assent/assent.db"
    database_connections: Annotated[int, Field(ge=FEWEST, le=500)] = 20
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024 * 1024
    max_body_values: Annotated[int, Field(ge=100)] = 200_000
    max_buffered_bytes: Annotated[int, Field(ge=1024)] = 256 * 1024 * 1024
    max_buffered_bytes_per_caller: Annotated[int, Field(ge=1024)] = 64 * 1024 * 1024
    max_item_bytes: Annotated[int, Field(ge=1024)] = 256 * 1024
    max_document_bytes: Annotated[int, Field(ge=1024)] = 256 * 1024
    max_answer_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024 * 1024
    max_open_requests: Annotated[int, Field(ge=10)] = 10_000
    max_open_requests_per_caller: Annotated[int, Field(ge=1)] = 2_000
    max_executing_per_caller: Annotated[int, Field(ge=1)] = 8
    max_waiting_per_caller: Annotated[int, Field(ge=0)] = 1_000
    max_open_anonymous: Annotated[int, Field(ge=4)] = 256
    max_incomplete_connections: Annotated[int, Field(ge=4)] = 512
    header_timeout: Duration = timedelta(seconds=10)
    body_timeout: Duration = timedelta(seconds=30)
    write_timeout: Duration = timedelta(seconds=30)
    rate_limit: Annotated[float, Field(ge=0)] = 500
    rate_limit_anonymous: Annotated[float, Field(ge=0)] = 100
    rate_limit_sign_in: Annotated[float, Field(ge=0)] = 30
    quota_open_requests: Annotated[int, Field(ge=1)] = 8_000
    quota_threads: Annotated[int, Field(ge=1)] = 1_000_000
    quota_pending_items: Annotated[int, Field(ge=1)] = 10_000
    quota_stored_bytes: Annotated[int, Field(ge=1)] = 50 * 1024**3
    quota_active_runs: Annotated[int, Field(ge=1)] = 10_000
    quota_crons: Annotated[int, Field(ge=1)] = 1_000
    session_lifetime: Duration = timedelta(days=7)
    key_lifetime: Duration = timedelta(days=90)
    undo_window: Grace = timedelta(seconds=5)
    audit_key: Path | None = None
    audit_anchor_file: Path | None = None
    audit_anchor_url: Annotated[str, AfterValidator(_receiver)] | None = None
    audit_anchor_every: Duration = timedelta(minutes=5)
    secret_key: Annotated[SecretStr, AfterValidator(_hard_to_guess)] | None = None
    public_url: Annotated[str, AfterValidator(_public_address)] | None = None
    url: Annotated[str, AfterValidator(_web_address)] = "http://127.0.0.1:2024"
    api_key: SecretStr | None = None
    gate_deployment: Annotated[str, Field(max_length=200)] | None = None
    gate_patience: Annotated[Duration, Field(ge=timedelta(seconds=1), le=timedelta(minutes=5))] = timedelta(seconds=15)
    outbound_allow: Annotated[tuple[str, ...], AfterValidator(_targets)] = ()
    deployments: Annotated[tuple[DeploymentSettings, ...], BeforeValidator(_parsed), AfterValidator(_distinct)] = ()
    default_multitask_strategy: Strategy = Strategy.REJECT
    thread_visibility: Visibility | None = None
    run_timeout: Duration = timedelta(days=1)
    run_concurrency: Annotated[int, Field(ge=1, le=10_000)] = 32
    run_in_server: bool = True
    run_patience: Duration = timedelta(seconds=10)
    run_attempts: Annotated[int, Field(ge=1, le=100)] = 5
    cron_catch_up: CatchUp = CatchUp.LATEST
    checkpoint_types: tuple[str, ...] = ()
    show_errors: bool | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    retention_event_payloads: Duration | None = None
    retention_frames: Duration = timedelta(hours=1)
    retention_deliveries: Duration = timedelta(days=30)
    retention_items: Duration | None = None

    @property
    def database_shown(self) -> str:
        """The database's URL without its secrets."""
        url = make_url(self.database)
        query = {name: "***" if "password" in name.lower() else value for name, value in url.query.items()}
        return url.set(query=query).render_as_string(hide_password=True)

    @property
    def database_file(self) -> Path | None:
        """The file of a SQLite database; None for other databases and in memory."""
        url = make_url(self.database)
        named = url.database if url.get_backend_name() == "sqlite" else None
        return Path(named) if named and named != ":memory:" else None

    @property
    def in_memory(self) -> bool:
        """Whether the database is in memory only."""
        return make_url(self.database).get_backend_name() == "sqlite" and self.database_file is None

    @property
    def new_thread_visibility(self) -> Visibility:
        """The default visibility of threads. Programs on a developer's own machine share theirs."""
        return self.thread_visibility or (Visibility.PRIVATE if self.mode is Mode.SERVE else Visibility.SHARED)

    @property
    def shows_errors(self) -> bool:
        """Whether callers see the texts of exceptions that agents raise."""
        return self.mode is not Mode.SERVE if self.show_errors is None else self.show_errors

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def may_call(self) -> Allowed:
        """The targets besides public addresses. A server on loopback may call loopback: the receiver under development
        runs here too, and the server's callers could call it directly."""
        local = LOOPBACK if self.mode is not Mode.SERVE and self.on_loopback else ()
        return Allowed.named((*self.outbound_allow, *local))

    @property
    def may_follow(self) -> Allowed:
        """The deployments besides public addresses: as `may_call`, and those that the operator's settings name."""
        named = (urlsplit(deployment.url).hostname or "" for deployment in self.deployments)
        allowed = self.may_call
        return Allowed(allowed.networks, allowed.hosts | {plain_host(host) for host in named})


def _mcp_address(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("use http://host:port/mcp or https://host/mcp")
    return value


def _collection(value: str) -> str:
    """Servers tell an address with a slash at its end from one without."""
    _web_address(value)
    return value


def _list_or_json(value: Any) -> Any:
    """`a, b` or `["a", "b"]`."""
    return _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else _listed(value)


def _listed(value: Any) -> Any:
    return _split(value) if isinstance(value, str) else value


_Transport = Literal["stdio", "http", "streamable-http", "streamableHttp", "sse"]


class McpServerSettings(BaseModel):
    """An MCP server in the JSON format that MCP clients share. Keys of other clients are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    command: Annotated[str, Field(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: dict[str, SecretStr] = Field(default_factory=dict)
    cwd: Path | None = None
    url: Annotated[str, AfterValidator(_mcp_address)] | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    type: _Transport | None = None
    transport: _Transport | None = None
    mode: Literal["auto", "legacy", "2026-07-28"] = "auto"
    disabled: bool = False

    @property
    def uses_sse(self) -> bool:
        return "sse" in (self.type, self.transport)

    @model_validator(mode="after")
    def _is_one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("give it a command or a url")
        return self


def _mcp_servers(value: Any) -> Any:
    """`{"mcpServers": {…}}`, or the name of a file with it. `${NAME}` is a variable of the environment."""
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        value = _file_text(Path(value))
    value = _parsed(value)
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise ValueError('use {"mcpServers": {"name": {"command": …}}}, or a file with it')
    return _with_variables(servers)


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _with_variables(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_variables(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_variables(part) for part in value]
    return _VARIABLE.sub(_variable, value) if isinstance(value, str) else value


def _variable(match: re.Match[str]) -> str:
    value = os.environ.get(match["name"], match["default"])
    if value is None:
        raise ValueError(f"the environment has no variable {match['name']}")
    return value


@dataclass(frozen=True, slots=True)
class CaldavServer:
    """A calendar on a server. `calendar` names the primary one if there are several."""

    url: str
    user: str | None = None
    password: SecretStr | None = None
    token: SecretStr | None = None
    calendar: str | None = None


class AssistantSettings(BaseModel):
    """The settings of the reference assistant. Its variables have their own names; see docs/assistant.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mcp_url: Annotated[str, AfterValidator(_mcp_address)] | None = None
    mcp_command: str | None = None
    mcp_headers: Annotated[dict[str, SecretStr], BeforeValidator(_parsed)] = Field(default_factory=dict)
    mcp_env: Annotated[dict[str, SecretStr], BeforeValidator(_parsed)] = Field(default_factory=dict)
    mcp_mode: Literal["auto", "legacy", "2026-07-28"] = "auto"
    mcp_servers: Annotated[dict[str, McpServerSettings], BeforeValidator(_mcp_servers)] = Field(default_factory=dict)
    mcp_timeouts: Annotated[dict[str, Duration], BeforeValidator(_parsed)] = Field(default_factory=dict)
    trusted_servers: Annotated[tuple[str, ...] | None, BeforeValidator(_list_or_json)] = None
    calendar: Path = Path(".assent/calendar.db")
    caldav_user: str | None = None
    caldav_password: SecretStr | None = None
    caldav_token: SecretStr | None = None
    caldav_calendar: str | None = None
    caldav_url: Annotated[Annotated[str, AfterValidator(_collection)] | None, Field(validate_default=True)] = None
    tool_mapping: Annotated[dict[str, tuple[str, ...]] | None, BeforeValidator(_parsed)] = None
    hitl_tools: Annotated[tuple[str, ...] | None, BeforeValidator(_list_or_json)] = None
    model: str = OFFLINE
    router_model: str | None = None
    executor_model: str | None = None
    model_url: Annotated[str, AfterValidator(_web_address)] | None = None
    model_key: SecretStr | None = None
    max_model_calls: Annotated[int, Field(ge=1, le=1000)] = 25
    max_tool_calls: Annotated[int, Field(ge=1, le=1000)] = 50
    max_messages: Annotated[int, Field(ge=1)] = 200
    openai_api_key: SecretStr | None = None
    google_api_key: SecretStr | None = None
    langfuse_public_key: SecretStr | None = None
    langfuse_secret_key: SecretStr | None = None
    langfuse_host: str | None = None
    otlp_endpoint: Annotated[str, AfterValidator(_web_address)] | None = None

    @property
    def caldav(self) -> CaldavServer | None:
        """The server of the calendar, if one is named."""
        if self.caldav_url is None:
            return None
        return CaldavServer(
            self.caldav_url, self.caldav_user, self.caldav_password, self.caldav_token, self.caldav_calendar
        )

    @field_validator("caldav_url")
    @classmethod
    def _has_one_credential(cls, url: str | None, info: ValidationInfo) -> str | None:
        given = {name for name in ("user", "password", "token") if info.data.get(f"caldav_{name}")}
        if url is None and given:
            raise ValueError(f"is missing, and ASSISTANT_CALDAV_{max(given).upper()} is set")
        if url and given not in ({"user", "password"}, {"token"}):
            raise ValueError("set ASSISTANT_CALDAV_USER and ASSISTANT_CALDAV_PASSWORD, or only ASSISTANT_CALDAV_TOKEN")
        return url

    def shown(self) -> dict[str, Any]:
        """The settings by their variables, without secrets: an address or a command may contain some."""
        values = self.model_dump(mode="json")
        for name in ("mcp_url", "model_url", "otlp_endpoint"):
            values[name] = values[name] and _without_secrets(values[name])
        values["mcp_command"] = values["mcp_command"] and values["mcp_command"].split()[0]
        values["mcp_servers"] = sorted(self.mcp_servers)
        return {_ASSISTANT_VARIABLES[name][0]: value for name, value in values.items()}

    @field_validator("model_url")
    @classmethod
    def _is_of_the_models(cls, url: str | None, info: ValidationInfo) -> str | None:
        """Requests for a server of the operator must not reach a vendor because the model's name is another's."""
        names = (info.data.get(name) for name in ("model", "router_model", "executor_model"))
        elsewhere = [name for name in names if name and name != OFFLINE and provider_of(name) not in _AT_AN_URL]
        if url and elsewhere:
            raise ValueError(f"{elsewhere[0]} does not use it: name the model openai:… or ollama:…")
        return url


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


_AT_AN_URL = ("openai", "ollama", "")
"""The providers whose models can be at an own address; a bare name is a model of OpenAI's protocol there."""


def provider_of(model: str) -> str:
    return model.partition(":")[0] if ":" in model else ""


_ASSISTANT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    **{
        name: (f"ASSISTANT_{name.upper()}",)
        for name in (
            *("mcp_url", "mcp_command", "mcp_headers", "mcp_env", "mcp_mode"),
            *("mcp_servers", "mcp_timeouts", "trusted_servers"),
            *("calendar", "tool_mapping", "hitl_tools"),
            *("caldav_user", "caldav_password", "caldav_token", "caldav_calendar", "caldav_url"),
        )
    },
    **{
        name: (f"ASSISTANT_{name.upper()}",)
        for name in (
            *("model", "router_model", "executor_model", "model_url", "model_key"),
            *("max_model_calls", "max_tool_calls", "max_messages"),
        )
    },
    "openai_api_key": ("OPENAI_API_KEY",),
    "google_api_key": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "langfuse_public_key": ("LANGFUSE_PUBLIC_KEY",),
    "langfuse_secret_key": ("LANGFUSE_SECRET_KEY",),
    "langfuse_host": ("LANGFUSE_HOST", "LANGFUSE_BASE_URL"),
    "otlp_endpoint": ("OTEL_EXPORTER_OTLP_ENDPOINT",),
}


def read_assistant_settings(environment: Mapping[str, str] | None = None) -> AssistantSettings:
    """An empty variable counts as not set, as in `.env` files."""
    environment = os.environ if environment is None else environment
    values: dict[str, tuple[Any, str]] = {}
    for name, variables in _ASSISTANT_VARIABLES.items():
        variable = next((each for each in variables if environment.get(each, "").strip()), None)
        if variable is not None:
            values[name] = (environment[variable].strip(), variable)
    try:
        return AssistantSettings(**{name: value for name, (value, _) in values.items()})
    except ValidationError as error:
        raise ConfigError("; ".join(_complaints(error, values)), hint="see docs/assistant.md") from None


def read_env_file(folder: Path) -> None:
    """Adds the variables of the `.env` file in the folder to the environment, which comes first."""
    file = folder / ".env"
    if not file.is_file():
        return
    from dotenv import dotenv_values

    try:
        values = dotenv_values(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    for name, value in values.items():
        if value is not None:
            os.environ.setdefault(name, value)


_SUGGESTED = {
    ("OPENAI_API_KEY",): "openai:gpt-5",
    ("ANTHROPIC_API_KEY",): "anthropic:claude-sonnet-4-5",
    ("GOOGLE_API_KEY", "GEMINI_API_KEY"): "google_genai:gemini-2.5-flash",
}


def suggested_models(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """A model for each provider whose key is in the environment, by the name of the key."""
    environment = os.environ if environment is None else environment
    given = {
        next((key for key in keys if environment.get(key, "").strip()), ""): model for keys, model in _SUGGESTED.items()
    }
    return {key: model for key, model in given.items() if key}


def environment() -> Mapping[str, str]:
    """The environment of this process, as it is when it is looked at: a project adds the variables of its own."""
    return os.environ


def is_telemetry_set() -> bool:
    return any(name.startswith("OTEL_") for name in os.environ)


def is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


@dataclass(frozen=True, slots=True)
class Loaded:
    """The current settings, and the origin of each: `default`, a file, an environment variable or an option."""

    settings: Settings
    origins: Mapping[str, str]
    remarks: tuple[str, ...] = ()


def load(
    options: Mapping[str, Any], environment: Mapping[str, str] | None = None, *, folder: Path | None = None
) -> Loaded:
    """Reads the layers, lowest first. `options` come from the command line; None means not given."""
    environment = os.environ if environment is None else environment
    folder = folder or Path.cwd()
    layers = [
        _from_file(environment, folder),
        _from_environment(environment),
        {name: (value, "command line") for name, value in options.items() if value is not None},
    ]
    values: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        values.update(layer)
    settings = _validated(values)
    origins = {name: values[name][1] if name in values else "default" for name in Settings.model_fields}
    return Loaded(_with_derived_defaults(settings, values), origins, _warnings_about_unknown(environment))


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
    values: dict[str, tuple[Any, str]] = {}
    for variable, value in environment.items():
        name = variable.removeprefix("ASSENT_").lower()
        if variable.startswith("ASSENT_") and name in Settings.model_fields:
            values[name] = (_split(value) if name in _LISTS else value, variable)
    return values


def _warnings_about_unknown(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The warnings about `ASSENT_` variables that are not settings. One that is nearly the name of a setting raises."""
    unknown = sorted(name for name in environment if name.startswith("ASSENT_") and not _is_known(name))
    for variable in unknown:
        if near := _nearest(variable.removeprefix("ASSENT_").lower()):
            raise ConfigError(f"{variable} is not a setting", hint=f"did you mean ASSENT_{near.upper()}?")
    return tuple(f"{variable} is not a setting and has no effect" for variable in unknown)


def _is_known(variable: str) -> bool:
    return variable == _FILE_VARIABLE or variable.removeprefix("ASSENT_").lower() in Settings.model_fields


def _nearest(name: str) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(Settings.model_fields), n=1, cutoff=0.75)), None)


def _split(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _validated(values: Mapping[str, tuple[Any, str]]) -> Settings:
    try:
        return Settings(**{name: value for name, (value, _) in values.items()})
    except ValidationError as error:
        raise ConfigError("; ".join(_complaints(error, values)), hint="see docs/settings.md") from None


def _complaints(error: ValidationError, values: Mapping[str, tuple[Any, str]]) -> list[str]:
    """One clause per invalid value: its name, its origin, the problem. Never the value: it may be a secret."""
    complaints = []
    for problem in error.errors(include_url=False, include_input=False):
        name, *within = map(str, problem["loc"])
        origin = values[name][1] if name in values else "default"
        unknown = problem["type"] == "extra_forbidden"
        flaw = _unknown(name) if unknown else problem["msg"].removeprefix("Value error, ")
        at = f"{'.'.join(within)}: " if within else ""
        complaints.append(f"{name} (from {origin}): {at}{flaw}")
    return complaints


def _unknown(name: str) -> str:
    near = _nearest(name)
    return f"is not a setting; did you mean {near}?" if near else "is not a setting"


def _with_derived_defaults(settings: Settings, values: Mapping[str, tuple[Any, str]]) -> Settings:
    """The demo has its own graphs, port and file; otherwise the database is under `.assent/` beside the graph
    configuration, regardless of the working directory."""
    derived: dict[str, Any] = {"database": f"sqlite:///{settings.config.parent / '.assent' / 'assent.db'}"}
    if settings.mode is Mode.DEMO:
        derived = {"database": "sqlite:///.assent/demo.db", "port": DEMO_PORT, "config": DEMO_PROJECT}
        derived["assistant"] = DEMO_ASSISTANT
    return settings.model_copy(update={name: value for name, value in derived.items() if name not in values})
