"""A caller's request for a run, and the thread of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assent.identity.model.visibility import Visible
from assent.threads.model.configs import clean_configurable, clean_run_metadata, clean_tags
from assent.threads.model.runs import Strategy
from assent.threads.model.threads import Lifetime, Visibility


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A caller's request for a run. Only the fields of the contract are stored."""

    assistant_id: str
    input: Any = None
    command: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    stream_mode: tuple[str, ...] = ("values",)
    stream_subgraphs: bool = False
    stream_resumable: bool = False
    interrupt_before: list[str] | str | None = None
    interrupt_after: list[str] | str | None = None
    multitask_strategy: Strategy | None = None
    create_thread: bool = False
    after_seconds: float = 0
    keep_thread: bool = False
    durability: str = "async"
    webhook: str | None = None
    lifetime: Lifetime | None = None
    """Of a thread that is created for the run."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that the project adds to the configuration, over the caller's own values."""
    caller_metadata: dict[str, Any] | None = None
    """The caller's own metadata, where the project's auth handler was able to change it."""
    cron: dict[str, str] = field(default_factory=dict)
    """The id of the cron that starts the run, and the due time."""

    @property
    def resume(self) -> Any:
        return (self.command or {}).get("resume")

    @property
    def answers(self) -> bool:
        return "resume" in (self.command or {})

    @property
    def steers(self) -> bool:
        """Whether the command contains more than an answer."""
        return any(value for name, value in (self.command or {}).items() if name != "resume")

    @property
    def continues(self) -> bool:
        """Whether it only continues the thread from its current position."""
        return not (self.input or self.command or self.checkpoint)

    @property
    def configures(self) -> bool:
        named = (self.config or {}).get("configurable")
        return bool(self.context or (isinstance(named, dict) and clean_configurable(named)))

    def tags_unlike(self, config: Mapping[str, Any]) -> bool:
        """Whether its tags differ from those of this config."""
        tags = clean_tags((self.config or {}).get("tags") or ())
        return bool(tags) and tags != config.get("tags")

    def adds_to(self, metadata: Mapping[str, Any]) -> bool:
        """Whether its caller's metadata differs from this. Some clients repeat theirs with every request."""
        own = self.metadata if self.caller_metadata is None else self.caller_metadata
        named = clean_run_metadata({**((self.config or {}).get("metadata") or {}), **own})
        return any(name not in metadata or metadata[name] != value for name, value in named.items())


@dataclass(frozen=True, slots=True)
class Place:
    """The thread of a run: one that its caller may see, or a new one."""

    thread_id: str | None = None
    visible: Visible | None = None
    visibility: Visibility = Visibility.SHARED
    """Of a thread that is created for the run."""
    lifetime: Lifetime | None = None
    """The default of such a thread."""
