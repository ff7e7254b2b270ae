"""A deployment: another server that runs graphs. Its questions are listed here, and answered through its API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from assent.kernel.ids import as_uuid

LONGEST_NAME = 100
MOST_GRAPHS = 50
_ACTOR = "deployment:"


class Trouble(StrEnum):
    """Why a deployment cannot be followed. docs/troubleshooting.md has a section for each."""

    UNREACHABLE = "unreachable"
    TLS = "tls"
    STOPPED = "stopped"
    NOT_LANGGRAPH = "not_langgraph"
    KEY_REFUSED = "key_refused"
    UNKNOWN_GRAPH = "unknown_graph"
    FAILING = "failing"

    @property
    def page(self) -> str:
        return f"docs/troubleshooting.md#{self.replace('_', '-')}"

    @property
    def advice(self) -> str:
        """The next step, in one line: not everybody has the documentation at hand."""
        return _ADVICE[self]


_ADVICE = {
    Trouble.UNREACHABLE: "compare the URL; a private address has to be named in outbound_allow or in assent.toml",
    Trouble.TLS: "renew the certificate, or use http:// for a server without TLS",
    Trouble.STOPPED: "start the deployment, or compare the port; the search is retried",
    Trouble.NOT_LANGGRAPH: "use the base URL, without /docs or the path of a page",
    Trouble.KEY_REFUSED: "store another key: assent deployments rotate NAME --key KEY",
    Trouble.UNKNOWN_GRAPH: "use a name of its langgraph.json, or the id of an assistant; the search is retried",
    Trouble.FAILING: "the reason is in the log of the deployment; the search is retried",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """The headers of every request to a deployment. They are stored encrypted."""

    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_headers(self) -> dict[str, str]:
        return {**self.headers, **({"x-api-key": self.key} if self.key else {})}


@dataclass(frozen=True, slots=True)
class Deployment:
    """`graphs` are the graphs or assistants to follow; without any, all are. `stringify_args`: its graphs expect edited
    arguments as texts. `called_at`: when its webhook was last called."""

    id: str
    name: str
    url: str
    credentials: bytes | None
    graphs: tuple[str, ...]
    stringify_args: bool
    paused: bool
    in_file: bool
    info: Mapping[str, Any] | None
    problem: Trouble | None
    message: str | None
    failing_since: datetime | None
    synced_at: datetime | None
    has_webhook: bool
    called_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def actor(self) -> str:
        """The requester of its questions."""
        return actor_of(self.id)

    @property
    def state(self) -> str:
        """One word for lists."""
        return "paused" if self.paused else self.problem or "ok"

    def lag(self, now: datetime) -> float | None:
        """Seconds since its questions were last read; None before the first time."""
        return None if self.synced_at is None else max((now - self.synced_at).total_seconds(), 0.0)


def actor_of(deployment_id: str) -> str:
    return f"{_ACTOR}{deployment_id}"


def is_remote(actor: str) -> bool:
    """Whether the actor is a deployment: this server has no gate there."""
    return actor.startswith(_ACTOR)


def search_for(graph: str) -> dict[str, str]:
    """The metadata of the threads of a graph, or of an assistant by its id."""
    assistant_id = as_uuid(graph)
    return {"assistant_id": assistant_id} if assistant_id else {"graph_id": graph}
