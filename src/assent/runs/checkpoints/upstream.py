"""The private parts of LangGraph's checkpoint format: the types that it knows as safe, and its own snapshot type.

`tests/unit/test_upstream.py` names each one and fails when it moves.
"""

from __future__ import annotations

from assent.runs.checkpoints.serde import require_strict_msgpack

require_strict_msgpack()

from langgraph._internal._constants import INPUT, NULL_TASK_ID  # noqa: E402
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES  # noqa: E402 - strict first
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # noqa: E402
from langgraph.pregel._algo import PregelTaskWrites, apply_writes  # noqa: E402
from langgraph.pregel._checkpoint import channels_from_checkpoint  # noqa: E402

__all__ = [
    "INPUT",
    "NULL_TASK_ID",
    "SAFE_MSGPACK_METHODS",
    "SAFE_MSGPACK_TYPES",
    "DeltaSnapshot",
    "PregelTaskWrites",
    "apply_writes",
    "channels_from_checkpoint",
]
