"""Strict checkpoints: on before LangGraph is there, exact for listed types, loud about all others."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from assent.errors import BlockedType, ConfigError, StateError, UnreadableState
from assent.runs.checkpoints.msgpack import StrictSerializer
from assent.runs.checkpoints.serde import listed_types, type_key
from assent.runs.checkpoints.state_types import state_types
from assent.runs.checkpoints.strict import strict_saver, strict_serializer
from assent.runs.checkpoints.types import CheckpointTypes
from tests.unit.engine import stored_types
from tests.unit.engine.stored_types import Color, Outer, Plan, Point, values
from tests.unit.engine.test_loader import run_python


@pytest.fixture
def graph() -> Any:
    builder: Any = StateGraph(stored_types.State)
    builder.add_node("node", lambda state: {})
    builder.add_edge(START, "node")
    return builder.compile()


@pytest.fixture
def serializer(graph: Any) -> StrictSerializer:
    return StrictSerializer(CheckpointTypes(state_types(graph)))


def test_strict_mode_is_turned_on_before_langgraph_is_imported() -> None:
    code = (
        "import json, os; from assent.runs.checkpoints.serde import require_strict_msgpack as require;"
        "require(); require();"
        "from langgraph.checkpoint.serde._msgpack import STRICT_MSGPACK_ENABLED as on; require();"
        "print(json.dumps([on, os.environ['LANGGRAPH_STRICT_MSGPACK']]))"
    )
    assert run_python(code) == [True, "true"]
    assert run_python(code, LANGGRAPH_STRICT_MSGPACK="false") == [True, "true"]


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("checkpoints.serde", "require_strict_msgpack()"),
        ("checkpoints.msgpack", ""),
        ("checkpoints.upstream", ""),
        ("project.loader", "prepare(Manifest(Path('.')))"),
    ],
)
def test_langgraph_imported_without_strict_mode_is_refused(module: str, call: str) -> None:
    code = (
        "import json; from pathlib import Path; import langgraph.checkpoint.memory;"
        "from assent.errors import StrictMsgpackOff; from assent.runs.project.manifest import Manifest\n"
        f"try:\n import assent.runs.{module} as m\n {f'm.{call}' if call else 'pass'}\n"
        "except StrictMsgpackOff as exc: print(json.dumps(exc.hint))\n"
    )
    assert "LANGGRAPH_STRICT_MSGPACK=true" in run_python(code)


@pytest.mark.parametrize("name", values())
def test_every_listed_type_comes_back_as_it_was(serializer: StrictSerializer, name: str) -> None:
    value = values()[name]
    back = serializer.loads_typed(serializer.dumps_typed(value))
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize("name", ["enum", "dataclass", "named tuple", "model", "secret", "in containers", "send"])
def test_unlisted_type_is_refused_by_name_when_written(name: str) -> None:
    with pytest.raises(BlockedType, match=r"^\S+:\S+ is not a type that .* add \"\S+\" to checkpoint_types$"):
        strict_serializer().dumps_typed(values()[name])


@pytest.mark.parametrize("name", ["enum", "dataclass", "named tuple", "model", "secret", "in containers", "send"])
def test_unlisted_type_is_refused_when_read(serializer: StrictSerializer, name: str) -> None:
    stored = serializer.dumps_typed(values()[name])
    with pytest.raises(BlockedType):
        strict_serializer().loads_typed(stored)


def test_blocked_type_error_names_the_setting_to_add() -> None:
    with pytest.raises(BlockedType) as caught:
        strict_serializer().dumps_typed({"state": [Color.RED]})
    name = "tests.unit.engine.stored_types:Color"
    assert caught.value.extra == {"type": name}
    assert f'add "{name}" to checkpoint_types' in str(caught.value)
    listed = strict_serializer(CheckpointTypes(listed_types([name])))
    assert listed.loads_typed(listed.dumps_typed({"state": [Color.RED]})) == {"state": [Color.RED]}


def test_value_outside_msgpack_is_reported() -> None:
    with pytest.raises(StateError, match="cannot be stored: Type is not msgpack serializable: object"):
        strict_serializer().dumps_typed({"a": object()})


def test_the_control_langgraphs_own_serializer_gives_a_dict() -> None:
    plain = JsonPlusSerializer()
    assert plain.loads_typed(plain.dumps_typed(Point(1, 2))) == {"x": 1, "y": 2}


@pytest.mark.parametrize("kind", ["pickle", "json"])
def test_no_other_format_is_read(serializer: StrictSerializer, kind: str) -> None:
    with pytest.raises(UnreadableState, match=f"checkpoint format {kind}"):
        serializer.loads_typed((kind, pickle.dumps({})))


def _call(code: int, *call: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(call)))


@pytest.mark.parametrize(
    "attack",
    [
        _call(0, "os", "system", "true"),
        _call(1, "subprocess", "Popen", [["true"]]),
        _call(2, "builtins", "dict", {"a": 1}),
        _call(3, "datetime", "datetime", "1", "strptime"),
        _call(3, "pathlib", "Path", "/", "cwd"),
        _call(5, "no_such_module", "Model", {}, "model_validate_json"),
    ],
)
def test_names_in_the_bytes_are_never_called(serializer: StrictSerializer, attack: bytes) -> None:
    with pytest.raises(BlockedType):
        serializer.loads_typed(("msgpack", attack))


@pytest.mark.parametrize(
    "stored", [b"", b"\xc1", _call(99, "a"), _call(0, "uuid"), _call(0, "uuid", "UUID", "no uuid")]
)
def test_damaged_bytes_are_an_error_and_not_none(serializer: StrictSerializer, stored: bytes) -> None:
    with pytest.raises(UnreadableState):
        serializer.loads_typed(("msgpack", stored))


def test_a_type_that_cannot_be_rebuilt_is_named(serializer: StrictSerializer) -> None:
    stored = _call(2, stored_types.__name__, "Point", {"gone": 1})
    with pytest.raises(
        UnreadableState, match=r"a stored tests.unit.engine.stored_types:Point cannot be rebuilt: TypeErr"
    ):
        serializer.loads_typed(("msgpack", stored))


def test_model_with_new_required_fields_keeps_its_type(
    serializer: StrictSerializer, caplog: pytest.LogCaptureFixture
) -> None:
    stored = _call(5, stored_types.__name__, "Plan", {"color": "red"}, "model_validate_json")
    with caplog.at_level(logging.WARNING):
        assert type(serializer.loads_typed(("msgpack", stored))) is Plan
    assert "validate stored Plan failed" in caplog.text


def test_langgraph_may_add_the_types_of_a_subgraph() -> None:
    plain = StrictSerializer()
    wider = plain.with_msgpack_allowlist([Plan, Color, type_key(Point), ("no_such_module", "X"), ("uuid", "UUID")])
    assert wider.loads_typed(wider.dumps_typed([Plan(goal="g"), Point(1)])) == [Plan(goal="g"), Point(1)]
    assert wider.with_msgpack_allowlist([type_key(Plan)]) is wider
    with pytest.raises(BlockedType):
        plain.dumps_typed(Point(1))


def _serializers() -> Iterator[Any]:
    from langgraph.checkpoint.serde.base import CipherProtocol

    class Backwards(CipherProtocol):
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "backwards", plaintext[::-1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return ciphertext[::-1]

    yield None
    yield StrictSerializer()
    yield EncryptedSerializer(Backwards(), JsonPlusSerializer())


@pytest.mark.parametrize("serde", list(_serializers()), ids=["default", "strict", "encrypted"])
def test_any_saver_becomes_strict_and_keeps_its_identity(serde: Any) -> None:
    saver = InMemorySaver(serde=serde)
    before = saver.serde
    strict = strict_saver(saver, CheckpointTypes({type_key(Point): Point}))
    assert strict.serde.loads_typed(strict.serde.dumps_typed(Point(1))) == Point(1)
    with pytest.raises(BlockedType):
        strict.serde.dumps_typed(Color.RED)
    assert saver.serde is before
    assert strict.storage is saver.storage  # type: ignore[attr-defined]


def test_a_saver_that_cannot_be_made_strict_is_refused() -> None:
    class Custom(JsonPlusSerializer):
        pass

    with pytest.raises(ConfigError, match="Custom cannot be made strict"):
        strict_saver(InMemorySaver(serde=Custom()), CheckpointTypes())


@pytest.mark.parametrize("name", ["Plan", "no_such_module:Plan", "json:Gone", "json:dumps", ":Plan"])
def test_setting_that_names_no_class_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="checkpoint_types"):
        listed_types([name])


def test_a_setting_may_name_a_nested_class() -> None:
    types = listed_types([f"{stored_types.__name__}:Outer.Inner"])
    assert types == {(stored_types.__name__, "Inner"): Outer.Inner}


def test_two_classes_of_one_name_are_not_mixed_up(caplog: pytest.LogCaptureFixture) -> None:
    class One:
        class Item(BaseModel):
            a: int = 1

    class Two:
        class Item(BaseModel):
            b: int = 2

    builder: Any = StateGraph(dict[str, One.Item | Two.Item])
    builder.add_node("node", lambda state: {})
    builder.add_edge(START, "node")
    assert (__name__, "Item") not in state_types(builder.compile())
    assert "two classes are named Item" in caplog.text
