"""One frozen `Settings`, and the only code that reads the environment and configuration files.

A value comes from, in rising order: its default, `assent.toml`, the environment (`ASSENT_<NAME>`), the command line.
`load` remembers which, so that `assent config` can say where each value comes from, and names what is wrong with one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from assent.errors import ConfigError, Invalid

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LISTS = frozenset({"allowed_hosts", "cors_origins", "trusted_proxies"})

LOOPBACK_ORIGIN = r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"


def _duration(value: Any) -> Any:
    """Accepts `90s`, `15m`, `12h`, `7d`, plain seconds, or what pydantic knows (ISO 8601)."""
    found = re.fullmatch(r"(\d+)([smhd])", value.strip()) if isinstance(value, str) else None
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else value


def _database(value: Any) -> str:
    try:
        url = make_url(str(value))
    except ArgumentError:
        raise ValueError("not a URL; use sqlite:///path or postgresql://…") from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(f"{url.get_backend_name()!r} is not supported; use sqlite:///path or postgresql://…")
    return str(value)


Duration = Annotated[timedelta, BeforeValidator(_duration)]


def parse_duration(text: str) -> timedelta:
    found = _duration(text)
    if not isinstance(found, timedelta) or found <= timedelta():
        raise Invalid(f"{text!r} is not a length of time", hint="such as 90s, 15m, 12h or 7d")
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
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 2024
    database: Annotated[str, BeforeValidator(_database)] = "sqlite:///.assent/assent.db"
    database_connections: Annotated[int, Field(ge=1, le=500)] = 10
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_body_bytes: Annotated[int, Field(ge=1024)] = 20 * 1024 * 1024
    session_lifetime: Duration = timedelta(days=7)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    retention_event_payloads: Duration | None = None

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings in force, and where each one comes from: `default`, a file, an environment variable or an option."""

    settings: Settings
    origins: Mapping[str, str]


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
    return Loaded(_beside_config(settings, found), origins)


def _from_file(environment: Mapping[str, str], folder: Path) -> dict[str, tuple[Any, str]]:
    named = environment.get("ASSENT_SETTINGS")
    path = folder / (named or "assent.toml")
    if not path.exists():
        if named:
            raise ConfigError(f"ASSENT_SETTINGS names {named}, which does not exist")
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} is not valid TOML: {error}") from None
    return {name: (value, path.name) for name, value in values.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for variable, value in environment.items():
        name = variable.removeprefix("ASSENT_").lower()
        if variable.startswith("ASSENT_") and name in Settings.model_fields:
            found[name] = (_split(value) if name in _LISTS else value, variable)
    return found


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
        what = (
            "is not a setting" if problem["type"] == "extra_forbidden" else problem["msg"].removeprefix("Value error, ")
        )
        said.append(f"{name} (from {origin}): {what}")
    return said


def _beside_config(settings: Settings, found: Mapping[str, tuple[Any, str]]) -> Settings:
    """The default database lies under `.assent/` beside the graph configuration, wherever the command was started."""
    if "database" in found:
        return settings
    name = "demo.db" if settings.mode is Mode.DEMO else "assent.db"
    path = settings.config.parent / ".assent" / name
    return settings.model_copy(update={"database": f"sqlite:///{path}"})
