"""The JSON of LangGraph's run requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool, field_validator

from assent.kernel.limits import MOST_LISTED
from assent.surfaces.api.langgraph.schemas import Body, Config
from assent.surfaces.api.langgraph.thread_states import Checkpoint
from assent.threads.model.runs import RunStatus, Strategy
from assent.threads.run_requests import RunRequest

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
Nodes = Annotated[list[str], Field(max_length=MOST_LISTED)] | Literal["*"] | None
ForkId = Annotated[str, Field(pattern=r"^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$")]


class Target(Body):
    """A node to go to, with an input of its own."""

    node: str = Field(min_length=1)
    input: Any = None


class Command(BaseModel):
    resume: Any = None
    update: dict[str, Any] | list[Any] | None = Field(None, description="an object, or a list of [key, value]")
    goto: str | Target | Annotated[list[str | Target], Field(max_length=MOST_LISTED)] | None = None


class Fork(Checkpoint):
    """The checkpoint that a run continues from."""

    checkpoint_id: ForkId | None = None


class RunBody(BaseModel):
    """The supported fields. Others are ignored, as LangGraph's server does."""

    assistant_id: str = Field(min_length=1, max_length=200)
    input: Any = None
    command: Command | None = None
    checkpoint: Fork | None = None
    checkpoint_id: ForkId | None = None
    config: Config | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    stream_mode: list[Mode] = Field(["values"], min_length=1, max_length=MOST_LISTED)
    stream_subgraphs: StrictBool = False
    stream_resumable: StrictBool = False
    interrupt_before: Nodes = None
    interrupt_after: Nodes = None
    multitask_strategy: Strategy | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    after_seconds: float | None = Field(None, ge=0, le=366 * 86400, strict=True)
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_completion: Literal["delete", "keep"] | None = None
    durability: Literal["sync", "async", "exit"] | None = None
    checkpoint_during: StrictBool | None = None
    webhook: str | None = Field(None, max_length=2000)

    @field_validator("stream_mode", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else ["values"] if value in (None, []) else value

    @field_validator("config", mode="before")
    @classmethod
    def _given(cls, value: Any) -> Any:
        """Null is the same as absent."""
        return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value

    def request(self) -> RunRequest:
        return RunRequest(
            assistant_id=self.assistant_id,
            input=self.input,
            command=self._command(),
            checkpoint=self._fork(),
            config=dict(self.config) if self.config is not None else None,
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

    def _command(self) -> dict[str, Any] | None:
        """None if it neither answers nor steers."""
        given = self.command.model_dump(exclude_unset=True) if self.command else {}
        return {name: value for name, value in given.items() if value or name == "resume"} or None

    def _fork(self) -> dict[str, Any] | None:
        if self.checkpoint is not None:
            return self.checkpoint.address() or None
        return {"checkpoint_id": self.checkpoint_id} if self.checkpoint_id else None


class CancelBody(BaseModel):
    """Either all runs of a status, or some runs of one thread."""

    status: Literal["pending", "running", "all"] | None = None
    thread_id: str | None = None
    run_ids: list[str] | None = Field(None, max_length=1000)

    @property
    def statuses(self) -> tuple[RunStatus, ...]:
        both = (RunStatus.PENDING, RunStatus.RUNNING)
        return both if self.status == "all" else (RunStatus(self.status),) if self.status else ()
