"""Imports the author's objects, and reports errors with the author's traceback.

A file is imported under its real module name if the import system would find the same file, so that relative imports
work and `from agent import State` elsewhere returns the same class. Otherwise its name is derived from its path in the
project: stored checkpoints contain module names, so these must not change when the project's folder moves.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from assent.errors import LoadError
from assent.runs.project.manifest import ObjectPath

_OURS = str(Path(__file__).parent)


def put_on_path(roots: Sequence[Path]) -> None:
    """Appends the roots at the end, so that the author's files never hide installed packages."""
    for root in map(str, roots):
        if root not in sys.path:
            sys.path.append(root)


@contextmanager
def authors_code(source: ObjectPath, roots: Sequence[Path]) -> Iterator[None]:
    """Converts any error of the author's code to a LoadError with the author's traceback."""
    try:
        yield
    except LoadError:
        raise
    except (Exception, SystemExit) as exc:
        raise LoadError(
            f"{source.text}: {type(exc).__name__}: {exc}",
            hint=_hint(exc),
            details=author_traceback(exc, roots),
            place=_place(exc, source, roots),
            reason=f"{type(exc).__name__}: {exc.msg if isinstance(exc, SyntaxError) else exc}",
        ) from exc


def import_object(source: ObjectPath, roots: Sequence[Path]) -> Any:
    """Imports the object. Call it inside `authors_code`."""
    module = _module(source, roots)
    if not hasattr(module, source.attribute):
        names = sorted(name for name in vars(module) if not name.startswith("_"))
        raise LoadError(f"{source.text}: there is no {source.attribute!r}", hint=f"the file has {', '.join(names)}")
    return getattr(module, source.attribute)


def _module(source: ObjectPath, roots: Sequence[Path]) -> ModuleType:
    if source.module is not None:
        return importlib.import_module(source.module)
    file = source.file
    if file is None or not file.is_file():
        raise LoadError(f"{source.text}: there is no such file", hint=f"looked for {file}")
    if file.suffix != ".py":
        raise LoadError(f"{source.text}: only Python graphs can be loaded")
    for name in _real_names(file):
        if _found_at(name, file):
            return importlib.import_module(name)
    return _execute(file, _made_name(file, roots[0]))


def _real_names(file: Path) -> Iterator[str]:
    """`agent/graph.py` below a folder of the path is `agent.graph`; the deepest folder outside packages comes first."""
    package = next(parent for parent in file.parents if not (parent / "__init__.py").is_file())
    folders = sorted({Path(entry) for entry in sys.path if entry}, key=lambda folder: -len(folder.parts))
    for base in (package, *folders):
        if file.is_relative_to(base) and package.is_relative_to(base):
            parts = file.relative_to(base).with_suffix("").parts
            if all(part.isidentifier() for part in parts):
                yield ".".join(parts)


def _found_at(name: str, file: Path) -> bool:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as exc:
        if exc.name is None or not f"{name}.".startswith(f"{exc.name}."):
            raise  # the package exists, but one of its imports does not
        return False
    except ValueError:  # a module of that name is loaded and has no spec
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin) == file


def _made_name(file: Path, root: Path) -> str:
    place = file.relative_to(root) if file.is_relative_to(root) else Path(*file.parts[1:])
    name = "assent_project__" + re.sub(r"\W", "_", "__".join(place.with_suffix("").parts))
    taken = sys.modules.get(name)
    return name if taken is None or taken.__file__ == str(file) else f"{name}_{sha256(bytes(file)).hexdigest()[:8]}"


def _execute(file: Path, name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise LoadError(f"{file.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before execution: dataclasses and pickle look up their module here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def author_traceback(error: BaseException, roots: Sequence[Path]) -> str:
    """The traceback without frames of Assent and the import machinery; only the project's frames if there are any."""
    report = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = report
    while part is not None:
        part.stack = traceback.StackSummary.from_list(_author_frames(part.stack, roots))
        part = part.__cause__ or part.__context__
    return "".join(report.format())


def _author_frames(stack: traceback.StackSummary, roots: Sequence[Path]) -> list[traceback.FrameSummary]:
    frames = [frame for frame in stack if not frame.filename.startswith((_OURS, "<frozen importlib"))]
    inside = [frame for frame in frames if any(Path(frame.filename).is_relative_to(root) for root in roots)]
    return inside or frames


def _place(error: BaseException, source: ObjectPath, roots: Sequence[Path]) -> str:
    """`agent.py:3`, relative to the project's folder if possible; without a line, the path of the object."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(Path(error.filename), roots)}:{error.lineno}"
    frames = _author_frames(traceback.extract_tb(error.__traceback__), roots)
    return f"{_short(Path(frames[-1].filename), roots)}:{frames[-1].lineno}" if frames else source.text


def _short(file: Path, roots: Sequence[Path]) -> Path:
    return next((file.relative_to(root) for root in roots if file.is_relative_to(root)), file)


def _hint(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        return f"install {error.name}, or name its folder in dependencies"
    return None
