"""Profiles: servers and keys by name, in a file that only its owner can read.

A stored key is sent only to the address that it was stored with. `--url`, `--key` and their variables precede profiles.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from assent.errors import ConfigError, NotFound
from assent.kernel import private_file
from assent.settings import environment

DEFAULT = "default"
Profile = Annotated[str | None, typer.Option(help="A profile of `assent login`.", metavar="NAME")]


@dataclass(frozen=True, slots=True)
class Stored:
    url: str
    key: str


def file() -> Path:
    given = environment()
    base = Path(given["XDG_CONFIG_HOME"]) if given.get("XDG_CONFIG_HOME") else Path.home() / ".config"
    return base / "assent" / "profiles.json"


def stored(name: str | None) -> Stored | None:
    """The profile of this name, else the default one if there is any."""
    profiles = _read()
    if name is not None and name not in profiles:
        known = ", ".join(sorted(profiles)) or "none yet"
        raise NotFound(f"there is no profile {name!r}", hint=f"assent login --profile {name} makes one; known: {known}")
    entry = profiles.get(name or DEFAULT)
    return None if entry is None else Stored(entry["url"], entry["key"])


def keep(name: str, profile: Stored) -> Path:
    path = file()
    with private_file.locked(path.parent):
        _write(path, _read() | {name: {"url": profile.url, "key": profile.key}})
    return path


def forget(name: str) -> None:
    path = file()
    with private_file.locked(path.parent):
        profiles = _read()
        if profiles.pop(name, None) is None:
            raise NotFound(f"there is no profile {name!r}")
        _write(path, profiles)


def _read() -> dict[str, dict[str, str]]:
    path = file()
    if not path.exists():
        return {}
    try:
        profiles: Any = json.loads(path.read_text(encoding="utf-8"))
        return {name: {"url": str(entry["url"]), "key": str(entry["key"])} for name, entry in profiles.items()}
    except (ValueError, AttributeError, TypeError, KeyError):
        raise ConfigError(f"{path} is not a file of profiles", hint="remove it, then assent login") from None


def _write(path: Path, profiles: dict[str, dict[str, str]]) -> None:
    private_file.replace(path, json.dumps(profiles, indent=2).encode())
