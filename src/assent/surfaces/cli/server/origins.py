"""`--allow-origin`: pages of other origins that may call a development server, with a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

import typer

from assent.errors import Invalid
from assent.settings import Settings

HOSTED = {"studio": "https://smith.langchain.com", "agent-inbox": "https://dev.agentinbox.ai"}
"""User interfaces hosted by others, by their short names."""

_PORTS = {"http": 80, "https": 443}

AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        help="Allow pages of this origin to call with a key: studio, agent-inbox or scheme://host[:port]. Repeatable.",
        metavar="ORIGIN",
    ),
]


def allowing(conf: Settings, names: Sequence[str] | None) -> Settings:
    """Adds these origins to the configured ones."""
    allowed = (*conf.cors_origins, *map(origin_of, names or ()))
    return conf.model_copy(update={"cors_origins": tuple(dict.fromkeys(allowed))})


def origin_of(name: str) -> str:
    """The origin as browsers write it: in lower case and without the scheme's default port."""
    if name in HOSTED:
        return HOSTED[name]
    parts = urlsplit(name)
    if not name.isascii() or parts.scheme not in _PORTS or not parts.hostname or not _is_bare(name):
        raise _refusal(name)
    try:
        port = parts.port
    except ValueError:
        raise _refusal(name) from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, _PORTS[parts.scheme]) else "")


def _is_bare(name: str) -> bool:
    """Whether there is only host and port: no user, path, query or fragment."""
    _, _, rest = name.partition("://")
    return rest != "" and not set(rest) & set("/?#@\\*, ")


def _refusal(name: str) -> Invalid:
    return Invalid(
        f"--allow-origin: {name!r} is not an origin",
        hint=f"use {', '.join(HOSTED)}, or scheme://host[:port] without a path, such as https://chat.example.com",
    )
