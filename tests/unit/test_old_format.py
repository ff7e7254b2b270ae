"""Msgpack is divided without being decoded, and the parts of earlier checkpoints are those that a run would store."""

from importlib import import_module
from typing import Any

import ormsgpack
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessageChunk

from assent.runs.checkpoints.msgpack import StrictSerializer
from assent.runs.checkpoints.values import Encoder, Known
from assent.threads.model import packed
from assent.threads.model.messages import MESSAGES, PACKAGE
from assent.threads.model.old_format import checkpoint_in_parts, write_in_parts
from assent.threads.model.parts import Inline, unpack, unpack_checkpoint

SERDE = StrictSerializer()
CLASSES = [getattr(import_module(f"{PACKAGE}.{module}"), name) for module, name in MESSAGES]
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
)
long = st.integers(200, 70_000).map(lambda size: "x" * size) | st.integers(10, 300).map(lambda size: b"y" * size)
documents = st.recursive(
    scalars | long,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=40), inner, max_size=20),
    max_leaves=30,
)


@given(st.lists(documents, max_size=20), st.dictionaries(st.text(max_size=40), documents, max_size=20))
def test_arrays_and_maps_are_divided_as_they_were_packed(values: list[Any], entries: dict[str, Any]) -> None:
    divided = packed.elements(ormsgpack.packb(values)) or []
    assert [ormsgpack.unpackb(value) for value in divided] == values
    assert packed.array(divided) == ormsgpack.packb(values)
    pairs = packed.entries(ormsgpack.packb(entries))
    assert {ormsgpack.unpackb(key): ormsgpack.unpackb(value) for key, value in pairs} == entries
    assert packed.mapping(pairs) == ormsgpack.packb(entries)


def message(cls: type[BaseMessage]) -> BaseMessage:
    content = {} if cls is RemoveMessage else {"content": "said " * 9}
    return cls(**content, **dict.fromkeys(("id", "role", "name", "tool_call_id"), "said"))


def test_converted_checkpoint_has_the_parts_of_a_stored_one() -> None:
    said = [(AIMessage if n % 2 else HumanMessage)("said " * n, id=str(n)) for n in range(60)]
    chunks = [SystemMessageChunk(content="said", id=str(n)) for n in range(60)]  # no message of a conversation
    more: list[Any] = [[message(cls)] * 20 for cls in CLASSES] + [["a" * 90] * 40, [{"n": n} for n in range(900)]]
    for value in (said, chunks, *more, said[:1], [], {"k": said}, "text" * 90, None):
        encoder = Encoder(SERDE, Known())
        ref = encoder.encode("messages", value)
        whole = {"v": 4, "id": "1", "channel_values": {"messages": value}, "channel_versions": {"messages": 3}}
        converted = checkpoint_in_parts(SERDE.dumps_typed(whole)[1])
        header, values = unpack_checkpoint(converted.data)
        assert header == Inline(*SERDE.dumps_typed({**whole, "channel_values": None}))
        assert values == [("messages", ref)]
        assert {part.name: part for part in converted.parts} == encoder.new
        assert converted.size == len(converted.data) + encoder.size
        kind, data = SERDE.dumps_typed(value)
        assert kind == "null" or unpack(write_in_parts(data).data) == ref
