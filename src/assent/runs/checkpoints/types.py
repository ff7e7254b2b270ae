"""The types that checkpoints of a project may hold: listed types, and the data classes of the project.

A class of the project is found only if its module is already imported and its file is below one of the project's
folders, so no name from stored bytes is ever imported. The folders are that of langgraph.json and its local
dependencies. Installed packages are excluded, even inside these folders.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType

from assent.runs.checkpoints import generic_models

TypeKey = tuple[str, str]
"""The stored name of a class: its module and its name."""

_INSTALLED = {"site-packages", "dist-packages"}


class CheckpointTypes(Mapping[TypeKey, type]):
    """Iterates over the listed types. Lookup also finds the project's types below `folders`, and parametrized versions
    of generic models."""

    def __init__(self, listed: Mapping[TypeKey, type] | None = None, folders: Iterable[Path] = ()) -> None:
        self._listed = dict(listed or {})
        self._folders = tuple(folders)

    def __getitem__(self, key: TypeKey) -> type:
        cls = self._listed.get(key) or _own(key, self._folders)
        if cls is None and generic_models.is_filled_in(key[1]):
            cls = self._filled_in(key)
        if cls is None or not generic_models.is_only(cls):
            raise KeyError(key)
        return cls

    def _filled_in(self, key: TypeKey) -> type | None:
        module, name = key
        base = self.get((module, generic_models.base_name(name)))
        return generic_models.filled_in(base, name, self._only) if base else None

    def _only(self, name: str) -> type | None:
        """The class of this name in any module, if it is unique."""
        classes = {cls for (_, listed), cls in self._listed.items() if listed == name}
        classes.update(own for module in tuple(sys.modules) if (own := _own((module, name), self._folders)))
        return classes.pop() if len(classes) == 1 else None

    def __iter__(self) -> Iterator[TypeKey]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __or__(self, other: Mapping[TypeKey, type]) -> CheckpointTypes:
        """Both lists, with the folders of `self`, or else of `other`."""
        folders = other._folders if isinstance(other, CheckpointTypes) else ()
        return CheckpointTypes({**self._listed, **other}, self._folders or folders)

    def covers(self, other: CheckpointTypes) -> bool:
        return other._listed.keys() <= self._listed.keys() and set(other._folders) <= set(self._folders)


def _own(key: TypeKey, folders: Sequence[Path]) -> type | None:
    """The project's class of this name; None if it is ambiguous, since stored names omit the outer class."""
    module, name = key
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None or not file or not any(_is_below(folder, Path(file)) for folder in folders):
        return None
    candidates = (getattr(loaded, name, None), *_inner_classes(loaded).get(name, ()))
    matching = {
        cls for cls in candidates if isinstance(cls, type) and (cls.__module__, cls.__name__) == key and _is_data(cls)
    }
    return matching.pop() if len(matching) == 1 else None


@cache
def _inner_classes(module: ModuleType) -> dict[str, list[type]]:
    """The nested classes of the module, by name."""
    nested = dict[str, list[type]]()
    waiting, seen = _classes_in(module, module.__name__), set[type]()
    while waiting:
        outer = waiting.pop()
        inner = _classes_in(outer, module.__name__) if outer not in seen else []
        seen.add(outer)
        waiting.extend(inner)
        for cls in inner:
            nested.setdefault(cls.__name__, []).append(cls)
    return nested


def _classes_in(place: ModuleType | type, module: str) -> list[type]:
    return [value for value in vars(place).values() if isinstance(value, type) and value.__module__ == module]


def _is_data(cls: type) -> bool:
    """Pydantic models, dataclasses, enums and named tuples."""
    is_model = hasattr(cls, "model_fields") or hasattr(cls, "__fields__")
    return is_model or dataclasses.is_dataclass(cls) or issubclass(cls, Enum) or hasattr(cls, "_fields")


def is_installed(folder: Path) -> bool:
    """Whether the folder is among installed packages, or in a virtual environment."""
    inside = (folder, *folder.parents)
    return bool(_INSTALLED & set(folder.parts)) or any((path / "pyvenv.cfg").exists() for path in inside)


@cache
def _is_below(folder: Path, file: Path) -> bool:
    file, folder = file.resolve(), folder.resolve()
    if not file.is_relative_to(folder) or _INSTALLED & set(file.relative_to(folder).parts):
        return False
    between = [parent for parent in file.parents if parent.is_relative_to(folder)]
    return not any((parent / "pyvenv.cfg").exists() for parent in between)
