"""Which classes a project's checkpoints may hold without a list: its own data classes, where they are imported."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from assent.errors import BlockedType, ConfigError
from assent.runs.checkpoints.serde import listed_types
from assent.runs.checkpoints.strict import strict_serializer
from assent.runs.checkpoints.types import CheckpointTypes
from assent.runs.project.loader import load_graphs
from assent.runs.project.manifest import read_manifest

SOURCE = """
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, Optional, TypeVar
from pydantic import BaseModel
from decimal import Decimal

class Model(BaseModel):
    x: int

@dataclass
class Data:
    x: int

class Choice(Enum):
    X = 1

class Named(NamedTuple):
    x: int

class Plain:
    def __init__(self, x): self.x = x

Renamed = Data
unhashable = [Data]

class Order(BaseModel):
    class Status(Enum):
        OPEN = "open"

    class Line(BaseModel):
        class Unit(NamedTuple):
            size: int

        unit: Unit

    class Draft:
        pass

    status: Status = Status.OPEN
    lines: list[Line] = []

class Invoice(BaseModel):
    class Kind(Enum):
        PAPER = "paper"

class Receipt(BaseModel):
    class Kind(Enum):
        PAPER = "paper"

class Level(Enum):
    HIGH = "high"

T = TypeVar("T")
U = TypeVar("U")

class Box(BaseModel, Generic[T]):
    value: T

class Pair(BaseModel, Generic[T, U]):
    left: T
    right: U

def filled(name, **values):
    return eval(name)(**values)

class Choices:
    line = Order.Line

    class Level(Enum):
        HIGH = "high"
"""
DATA = {"Model": {"x": 1}, "Data": {"x": 1}, "Choice": {"value": 1}, "Named": {"x": 1}}

Install = Callable[..., ModuleType]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Writes the source to a folder below the test's own, and imports it."""

    def write(name: str, place: str = ".") -> ModuleType:
        folder = tmp_path / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(SOURCE)
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path.parent)):
            del sys.modules[name]


@pytest.mark.parametrize("name", DATA)
def test_data_classes_of_the_project_are_kept(install: Install, tmp_path: Path, name: str) -> None:
    value = getattr(install("own_project"), name)(**DATA[name])
    serializer = strict_serializer(CheckpointTypes(folders=[tmp_path]))
    assert serializer.loads_typed(serializer.dumps_typed([value])) == [value]


def test_classes_inside_of_classes_are_kept(install: Install, tmp_path: Path) -> None:
    order = install("own_project").Order
    line = order.Line(unit=order.Line.Unit(3))
    values = [order(lines=[line]), line, line.unit, order.Status.OPEN]
    serializer = strict_serializer(CheckpointTypes(folders=[tmp_path]))
    stored = serializer.loads_typed(serializer.dumps_typed(values))
    assert stored == values
    assert [type(one) for one in stored] == [type(one) for one in values]


BOXES: dict[str, dict[str, Any]] = {
    "Box[int]": {"value": 1},
    "Box[list[int]]": {"value": [1]},
    "Box[Optional[int]]": {"value": None},
    "Box[tuple[int, ...]]": {"value": (1, 2)},
    "Box[Model]": {"value": {"x": 1}},
    "Box[Box[Model]]": {"value": {"value": {"x": 1}}},
    "Pair[str, dict[str, Any]]": {"left": "a", "right": {"b": 1}},
}


@pytest.mark.parametrize("name", BOXES)
def test_generic_models_with_arguments_are_kept_before_their_first_use(
    install: Install, tmp_path: Path, name: str
) -> None:
    value = install("own_project").filled(name, **BOXES[name])
    kind, stored, shown = *strict_serializer(CheckpointTypes(folders=[tmp_path])).dumps_typed([value]), repr(value)
    del value, sys.modules["own_project"]
    again = install("own_project")
    [found] = strict_serializer(CheckpointTypes(folders=[tmp_path])).loads_typed((kind, stored))
    assert (repr(found), type(found)) == (shown, type(again.filled(name, **BOXES[name])))


@pytest.mark.parametrize(
    "name", ["Box[Plain]", "Box[object]", "Box[print()]", "Box[Decimal.from_float]", "Box[int", "int[str]"]
)
def test_generic_models_of_anything_else_are_refused(install: Install, tmp_path: Path, name: str) -> None:
    install("own_project")
    assert ("own_project", name) not in CheckpointTypes(folders=[tmp_path])


def test_generic_models_whose_argument_has_the_name_of_another_class_are_refused(
    install: Install, tmp_path: Path
) -> None:
    first, other = install("own_project"), install("other_project")
    values = [first.Box[first.Model](value={"x": 1}), first.Box[other.Model](value={"x": 1})]
    for value in values:
        with pytest.raises(BlockedType, match=r"Box\[Model\]"):
            strict_serializer(CheckpointTypes(folders=[tmp_path])).dumps_typed(value)


@pytest.mark.parametrize("listed", ["elsewhere:Box", "elsewhere:Box[int]"])
def test_the_setting_allows_a_generic_model_with_its_arguments(install: Install, listed: str) -> None:
    value = install("elsewhere").Box[int](value=1)
    with pytest.raises(BlockedType) as refused:
        strict_serializer().dumps_typed(value)
    assert 'add "elsewhere:Box" and the classes in its brackets' in str(refused.value)
    serializer = strict_serializer(CheckpointTypes(listed_types([listed])))
    assert serializer.loads_typed(serializer.dumps_typed(value)) == value


@pytest.mark.parametrize("listed", ["elsewhere:Box[Missing]", "elsewhere:Data[int]"])
def test_a_generic_model_that_cannot_be_made_stops_the_start(install: Install, listed: str) -> None:
    install("elsewhere")
    with pytest.raises(ConfigError, match="checkpoint_types"):
        listed_types([listed])


@pytest.mark.parametrize("name", ["Invoice.Kind.PAPER", "Receipt.Kind.PAPER"])
def test_two_classes_of_one_name_are_refused(install: Install, tmp_path: Path, name: str) -> None:
    """Stored values of one class could come back as the other."""
    value = attrgetter(name)(install("own_project"))
    with pytest.raises(BlockedType, match="own_project:Kind"):
        strict_serializer(CheckpointTypes(folders=[tmp_path])).dumps_typed([value])


def test_class_of_the_module_with_the_name_of_an_inner_one_is_refused(install: Install, tmp_path: Path) -> None:
    module = install("own_project")
    for value in (module.Level.HIGH, module.Choices.Level.HIGH):
        with pytest.raises(BlockedType, match="own_project:Level"):
            strict_serializer(CheckpointTypes(folders=[tmp_path])).dumps_typed([value])


@pytest.mark.parametrize("name", DATA)
def test_control_without_the_project_folder_classes_are_refused(install: Install, name: str) -> None:
    value = getattr(install("own_project"), name)(**DATA[name])
    with pytest.raises(BlockedType):
        strict_serializer().dumps_typed([value])


@pytest.mark.parametrize("place", ["lib/site-packages", "dist-packages", "venv/lib", "../elsewhere"])
def test_installed_classes_and_classes_outside_the_project_are_refused(
    install: Install, tmp_path: Path, place: str
) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    install("installed", place)
    assert ("installed", "Data") not in CheckpointTypes(folders=[tmp_path])


@pytest.mark.parametrize(
    "name", ["Plain", "Renamed", "Decimal", "BaseModel", "nothing", "dataclass", "Draft", "line", "unhashable"]
)
def test_module_attributes_that_are_no_data_classes_are_refused(install: Install, tmp_path: Path, name: str) -> None:
    install("own_project")
    assert ("own_project", name) not in CheckpointTypes(folders=[tmp_path])


def test_no_module_is_imported_for_a_stored_name(install: Install, tmp_path: Path) -> None:
    value = install("own_project").Data(1)
    serializer = strict_serializer(CheckpointTypes(folders=[tmp_path]))
    stored = serializer.dumps_typed([value])
    del sys.modules["own_project"]
    with pytest.raises(BlockedType, match="own_project:Data"):
        serializer.loads_typed(stored)
    assert "own_project" not in sys.modules


def test_folder_survives_further_lists(tmp_path: Path, install: Install) -> None:
    install("own_project")
    own = CheckpointTypes(folders=[tmp_path])
    for types in (own | {("m", "C"): int}, CheckpointTypes({("m", "C"): int}) | own):
        assert ("own_project", "Data") in types
        assert types[("m", "C")] is int
        assert types.covers(own)
    assert not CheckpointTypes().covers(own)


MONOREPO = """
from typing import Any, TypedDict
from langgraph.graph import START, StateGraph
import shared_models, packaged_models

class State(TypedDict):
    value: Any

graph = StateGraph(State).add_node("end", lambda state: {}).add_edge(START, "end")
"""


@pytest.mark.parametrize("packaged", ["env/lib/site-packages/own", "env/own"])
async def test_local_folders_among_the_dependencies_are_the_project_and_installed_ones_are_not(
    install: Install, tmp_path: Path, packaged: str
) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    shared, installed = install("shared_models", "libs"), install("packaged_models", packaged)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "monorepo.py").write_text(MONOREPO)
    manifest = {"graphs": {"agent": "./monorepo.py:graph"}, "dependencies": [".", "../libs", f"../{packaged}"]}
    (tmp_path / "app" / "langgraph.json").write_text(json.dumps(manifest))
    spec = load_graphs(read_manifest(tmp_path / "app" / "langgraph.json")).graphs["agent"]
    async with spec.open({}, checkpointer=InMemorySaver(), store=None) as graph:
        serializer = cast("BaseCheckpointSaver[Any]", graph.checkpointer).serde
    value = shared.Model(x=1)
    assert serializer.loads_typed(serializer.dumps_typed(value)) == value
    with pytest.raises(BlockedType, match="packaged_models:Model"):
        serializer.dumps_typed(installed.Model(x=1))
