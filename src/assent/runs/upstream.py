"""The private names of LangGraph that Assent uses as text: keys of a run's config, names of channels, a module.

This module imports no LangGraph, so that strict checkpoints can be required first. `tests/unit/test_upstream.py`
compares every name with LangGraph's own.
"""

from __future__ import annotations

import sys

STRICT_RESUME = "__pregel_strict_resume"
"""In a config: an answer to a question that is not open is an error."""

RESUMING = "__pregel_resuming"
RESUME_MAP = "__pregel_resume_map"
"""A RemoteGraph that is a node of another graph sends both when that graph resumes."""

PUSH = "__pregel_push"
"""The first part of the path of a task that a `Send` made."""

INTERRUPT = "__interrupt__"
"""The key of the open questions in streamed values and updates."""

TASKS = "__pregel_tasks"
"""The channel of the tasks that `Send`s make."""

CHANNELS = ("branch:", "join:", "__")
"""How the names of channels begin that are not keys of the state."""

MSGPACK_MODULE = "langgraph.checkpoint.serde._msgpack"


def strict_msgpack() -> bool | None:
    """Whether LangGraph was imported with strict checkpoints; None where it was not imported yet."""
    loaded = sys.modules.get(MSGPACK_MODULE)
    return None if loaded is None else bool(loaded.STRICT_MSGPACK_ENABLED)
