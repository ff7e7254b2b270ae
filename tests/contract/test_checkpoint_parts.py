"""States stored as parts are read back with the bytes of whole checkpoints, which LangGraph's own SQLite saver stores.

Every history is encoded both ways, with the same objects: lists grow, lose and get elements in the middle, messages are
edited or changed in place, forks continue from any checkpoint.
"""

from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from sqlalchemy import delete, select

from assent.errors import UnreadableState
from assent.kernel.store import tables
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints import values
from assent.runs.checkpoints.msgpack import StrictSerializer
from assent.runs.checkpoints.recent import Blueprint, Recent
from assent.runs.checkpoints.values import Decoder, Encoder, Known
from assent.threads.model.parts import FORMAT, NODE, Inline, Part, pack_checkpoint, refs_in, unpack
from assent.threads.rows import threads
from assent.threads.rows.state import checkpoints, parts, thread_storage
from assent.threads.rows.state.checkpoints import Stored
from tests.contract.stores import AnyStore
from tests.scoreboard import Count, RecordScore

SERDE = StrictSerializer()

texts = st.text(max_size=30) | st.text(min_size=150, max_size=200)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
messages: st.SearchStrategy[AnyMessage] = (
    st.builds(HumanMessage, content=texts, id=st.uuids().map(str))
    | st.builds(AIMessage, content=texts, additional_kwargs=st.dictionaries(st.just("k"), plain, max_size=1))
    | st.builds(ToolMessage, content=texts, tool_call_id=st.just("call"), artifact=plain)
)
elements = messages | plain
channels = st.sampled_from(["messages", "log", "value"])
steps = st.tuples(
    st.sampled_from(["append", "extend", "insert", "remove", "replace", "mutate", "set", "clear", "fork"]),
    channels,
    st.integers(0, 200),
    elements,
    plain,
)


def changed(values: dict[str, Any], step: tuple[str, str, int, Any, Any]) -> dict[str, Any]:
    """The state after a step. Lists are new; their elements are the same objects, as with LangGraph's reducers."""
    how, channel, place, element, more = step
    now = values.get(channel)
    old = list(now) if type(now) is list else []
    at = place % len(old) if old else 0
    acts: dict[str, Callable[[], Any]] = {
        "append": lambda: [*old, element],
        "extend": lambda: [*old, *([element] * place)],
        "insert": lambda: [*old[:at], element, *old[at:]],
        "remove": lambda: old[:at] + old[at + 1 :],
        "replace": lambda: [*old[:at], element, *old[at + 1 :]],
        "set": lambda: element,
        "clear": list,
    }
    if how == "mutate":
        mutate(old[at] if old else None, more)
        return dict(values)
    return {**values, channel: acts[how]()} if how in acts else dict(values)


def mutate(element: Any, more: Any) -> None:
    if isinstance(element, HumanMessage | AIMessage | ToolMessage):
        element.additional_kwargs["changed"] = more
    elif isinstance(element, dict):
        element["changed"] = more
    elif isinstance(element, list):
        element.append(more)


def in_parts(known: Known, stored: dict[bytes, Any], values: dict[str, Any]) -> dict[str, Any]:
    encoder = Encoder(SERDE, known)
    refs = {name: encoder.encode(name, value) for name, value in values.items()}
    stored.update(encoder.new)
    known.add(list(encoder.new.values()))
    return refs


def recalled(stored: dict[bytes, Any], recent: Recent) -> dict[bytes, Any]:
    return {name: recent.get(name) or part for name, part in stored.items()}


@pytest.mark.scoreboard
def test_every_state_of_a_history_has_the_bytes_of_a_whole_checkpoint(
    count: Count, record_score: RecordScore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "AT_ONCE", 16)  # more lists have several groups of messages
    total, compared = count(full=2000, quick=60), 0

    @settings(max_examples=total, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(steps, min_size=1, max_size=12), st.booleans())
    def compare(history: list[Any], reload: bool) -> None:
        nonlocal compared
        compare_states(history, reload=reload)
        compared += 1

    compare()
    result = f"{compared} histories, 0 differences"
    record_score(
        "states of generated histories in parts and in whole checkpoints", "≥ 2,000 histories, 0 differences", result
    )


def compare_states(history: list[Any], *, reload: bool) -> None:
    known, stored, recent = Known(), dict[bytes, Any](), Recent()
    state: dict[str, Any] = {}
    past: list[tuple[dict[str, Any], bytes]] = []
    for step in history:
        if step[0] == "fork" and past:
            refs, _ = past[step[2] % len(past)]
            known = Known() if reload else known
            decoder = Decoder(SERDE, recalled(stored, recent), known, recent)
            state = {name: decoder.decode(name, ref) for name, ref in refs.items()}
        state = changed(state, step)
        past.append((in_parts(known, stored, state), SERDE.dumps_typed(state)[1]))
    for refs, oracle in past * 2:  # the second time with what the first has kept
        decoder = Decoder(SERDE, recalled(stored, recent), None, recent)
        decoded = {name: decoder.decode(name, ref) for name, ref in refs.items()}
        assert SERDE.dumps_typed(decoded)[1] == SERDE.dumps_typed(SERDE.loads_typed(("msgpack", oracle)))[1]


def chat(checkpoint_id: str, *texts: str) -> tuple[Stored, list[Part]]:
    encoder = Encoder(SERDE, Known())
    ref = encoder.encode("messages", [HumanMessage(text * 300, id=text) for text in texts])
    data = pack_checkpoint(Inline(*SERDE.dumps_typed({})), [("messages", ref)])
    return Stored(checkpoint_id, "", None, FORMAT, data, "{}", encoder.size), list(encoder.new.values())


def put(tx: Tx, thread_id: str, checkpoint_id: str, *texts: str) -> None:
    stored, new = chat(checkpoint_id, *texts)
    checkpoints.put(tx, thread_id, stored, None, new)


def names(tx: Tx, thread_id: str) -> set[bytes]:
    this = tables.checkpoint_parts.c.thread_id == thread_id
    rows = tx.all(select(tables.checkpoint_parts.c.name).where(tables.checkpoint_parts.c.tenant_id == TENANT, this))
    return {row.name for row in rows}


async def test_prune_deletes_parts_of_no_checkpoint_and_copies_keep_theirs(store: AnyStore) -> None:
    for checkpoint_id, said in (("1", "ab"), ("2", "bc")):
        await store.write("acme", put, "t", checkpoint_id, *said)
    await store.write("acme", thread_storage.copy_checkpoints, "t", "copy")
    assert len(await store.read("acme", names, "t")) == 3
    assert await store.write("acme", thread_storage.keep_latest, "t")
    kept = {part.name for part in chat("2", "b", "c")[1]}
    assert await store.read("acme", names, "t") == kept
    assert len(await store.read("acme", names, "copy")) == 3
    await store.write("acme", threads.remove, "copy")
    assert await store.read("acme", names, "copy") == set()
    assert await store.read("other", names, "t") == set()


@pytest.mark.parametrize("damage", [None, "missing", "shorter", "leaf"])
async def test_history_below_a_damaged_node_is_neither_shortened_nor_swept(store: AnyStore, damage: str | None) -> None:
    said = [f"{number} " for number in range(40)]
    for checkpoint_id, texts in (("1", ["old"]), ("2", said)):
        await store.write("acme", put, "t", checkpoint_id, *texts)
    stored, new = chat("2", *said)
    node = next(part for part in new if part.type == NODE)
    before = await store.read("acme", names, "t")
    if damage is None:  # the control
        assert await store.write("acme", thread_storage.keep_latest, "t")
        assert await store.read("acme", names, "t") == {part.name for part in new} < before
        return
    damaged = {"shorter": node._replace(data=node.data[:-16]), "leaf": new[0]._replace(name=node.name)}
    broken = [damaged[damage]] if damage in damaged else []
    await store.write("acme", replace, "t", node, broken)
    with pytest.raises(UnreadableState, match=r"part of the checkpoint is (missing|damaged)"):
        await store.write("acme", thread_storage.keep_latest, "t")
    assert await store.read("acme", names, "t") == before - {node.name} | {part.name for part in broken}
    with pytest.raises(UnreadableState):
        await store.read("acme", parts.load, "t", refs_in(stored.checkpoint), {}, lambda names: {})
    loaded = {part.name: part for part in new if part != node} | {part.name: part for part in broken}
    [ref] = refs_in(stored.checkpoint)
    with pytest.raises(UnreadableState):
        Decoder(SERDE, loaded, None).decode("messages", ref)


def replace(tx: Tx, thread_id: str, node: Part, new: list[Part]) -> None:
    named = (tables.checkpoint_parts.c.thread_id == thread_id, tables.checkpoint_parts.c.name == node.name)
    tx.change(delete(tables.checkpoint_parts).where(tables.checkpoint_parts.c.tenant_id == TENANT, *named))
    parts.add(tx, thread_id, new)


def test_unknown_kind_of_reference_is_unreadable() -> None:
    with pytest.raises(UnreadableState, match="not supported"):
        unpack(ormsgpack.packb([2, 1, 1, b"n" * 16]))


def test_decoder_raises_for_a_message_in_the_place_of_a_node() -> None:
    stored, recent = dict[bytes, Any](), Recent()
    conversation = [HumanMessage("x" * 300, id=str(n)) for n in range(40)]
    refs = in_parts(Known(), stored, {"messages": conversation})
    assert Decoder(SERDE, stored, None, recent).decode("messages", refs["messages"]) == conversation
    blueprint = next(kept for name in stored if isinstance(kept := recent.get(name), Blueprint))
    node = next(name for name, part in stored.items() if part.type == NODE)
    with pytest.raises(UnreadableState):
        Decoder(SERDE, stored | {node: blueprint}, None).decode("messages", refs["messages"])


def test_message_changed_in_place_is_stored_again() -> None:
    known, stored = Known(), dict[bytes, Any]()
    message = HumanMessage("a" * 300, id="1")
    before = in_parts(known, stored, {"messages": [message]})
    assert in_parts(known, stored, {"messages": [message]}) == before
    message.content = "b" * 300
    after = in_parts(known, stored, {"messages": [message]})
    assert Decoder(SERDE, stored, None).decode("messages", after["messages"])[0].content == "b" * 300
    assert Decoder(SERDE, stored, None).decode("messages", before["messages"])[0].content == "a" * 300


def test_appended_message_adds_only_itself_and_the_end_of_its_tree() -> None:
    known, stored = Known(), dict[bytes, Any]()
    conversation = [HumanMessage("x" * 800, id=str(n)) for n in range(2000)]
    in_parts(known, stored, {"messages": conversation})
    size = len(stored)
    in_parts(known, stored, {"messages": [*conversation, HumanMessage("y" * 800, id="new")]})
    assert len(stored) - size == 1
