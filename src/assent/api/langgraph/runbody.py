"""What a caller may ask of a run: the JSON of LangGraph's run requests."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from assent.domain.runs import RunStatus, Strategy
from assent.services.starting import RunRequest

Mode = Literal["values", "updates", "messages", "messages-tuple", "custom", "events", "debug", "tasks", "checkpoints"]
RunField = Literal[
    "run_id",
    "thread_id",
    "assistant_id",
    "created_at",
    "updated_at",
    "status",
    "metadata",
    "kwargs",
    "multitask_strategy",
    "cancel_reason",
]
Nodes = list[str] | Literal["*"] | None


class Command(BaseModel):
    resume: Any = None
    update: dict[str, Any] | list[Any] | None = None
    goto: Any = None


class RunBody(BaseModel):
    """Fields that the contract names. Others are ignored, as LangGraph's server does."""

    assistant_id: str = Field(min_length=1, max_length=200)
    input: Any = None
    command: Command | None = None
    checkpoint: dict[str, Any] | None = None
    checkpoint_id: str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    stream_mode: list[Mode] = Field(["values"], min_length=1)
    stream_subgraphs: bool = False
    stream_resumable: bool = False
    interrupt_before: Nodes = None
    interrupt_after: Nodes = None
    multitask_strategy: Strategy | None = None
    if_not_exists: Literal["create", "reject"] = "reject"
    after_seconds: float | None = Field(None, ge=0, le=366 * 86400)
    on_disconnect: Literal["cancel", "continue"] = "continue"
    on_completion: Literal["delete", "keep"] = "delete"
    durability: Literal["sync", "async", "exit"] | None = None
    checkpoint_during: bool | None = None
    webhook: str | None = Field(None, max_length=2000)

    @field_validator("stream_mode", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value or ["values"]

    def request(self) -> RunRequest:
        return RunRequest(
            assistant_id=self.assistant_id,
            input=self.input,
            command=self.command.model_dump(exclude_unset=True) if self.command else None,
            checkpoint=self.checkpoint or ({"checkpoint_id": self.checkpoint_id} if self.checkpoint_id else None),
            config=self.config,
            context=self.context,
            metadata=self.metadata or {},
            stream_mode=tuple(self.stream_mode),
            stream_subgraphs=self.stream_subgraphs,
            stream_resumable=self.stream_resumable,
            interrupt_before=self.interrupt_before,
            interrupt_after=self.interrupt_after,
            multitask_strategy=self.multitask_strategy,
            create_thread=self.if_not_exists == "create",
            after_seconds=self.after_seconds or 0,
            keep_thread=self.on_completion == "keep",
            durability=self.durability or ("exit" if self.checkpoint_during is False else "async"),
            webhook=self.webhook,
        )


class CancelBody(BaseModel):
    """Either all runs of a status, or some runs of one thread."""

    status: Literal["pending", "running", "all"] | None = None
    thread_id: str | None = None
    run_ids: list[str] | None = None

    @property
    def statuses(self) -> tuple[RunStatus, ...]:
        both = (RunStatus.PENDING, RunStatus.RUNNING)
        return both if self.status == "all" else (RunStatus(self.status),) if self.status else ()
