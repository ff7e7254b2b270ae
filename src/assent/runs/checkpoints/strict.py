"""Strict serializers and savers, which accept the types of a project and refuse others.

This module imports LangGraph only inside its functions, so that strict mode can be required first.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from assent.errors import ConfigError
from assent.runs.checkpoints.types import CheckpointTypes

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.base import SerializerProtocol


def strict_serializer(types: CheckpointTypes | None = None) -> SerializerProtocol:
    """A serializer that accepts LangGraph's safe types, and these."""
    from assent.runs.checkpoints.msgpack import StrictSerializer

    return StrictSerializer(types)


def strict_saver(saver: BaseCheckpointSaver[Any], types: CheckpointTypes) -> BaseCheckpointSaver[Any]:
    """A shallow copy of `saver` with a strict serializer that also accepts these types."""
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    strict = copy.copy(saver)
    if isinstance(saver.serde, EncryptedSerializer):
        strict.serde = EncryptedSerializer(saver.serde.cipher, _made_strict(saver.serde.serde, types))
    else:
        strict.serde = _made_strict(saver.serde, types)
    return strict


def _made_strict(serde: SerializerProtocol, types: CheckpointTypes) -> SerializerProtocol:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    from assent.runs.checkpoints.msgpack import StrictSerializer

    if isinstance(serde, StrictSerializer):
        return serde.with_types(types)
    if type(serde) is JsonPlusSerializer:
        return StrictSerializer(types)
    raise ConfigError(
        f"the serializer {type(serde).__name__} cannot be made strict", hint="use the saver's default serializer"
    )
