"""Edits of arguments on the command line, and their differences: old → new, field by field."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import typer

from assent.errors import Invalid, NotFound
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.secrets import MASK
from assent.surfaces.cli.escapes import escaped

_NOTHING = object()
HINT = "Change only what you must: a large edit can make the agent's model plan again."


def edited(before: Json, args: str | None, file: Path | None, settings: Sequence[str]) -> Json:
    """The new arguments: `args` or `file`, else the present ones, with each `path=value` applied. The server keeps a
    secret whose mask is unchanged."""
    if args is not None and file is not None:
        raise Invalid("use --args or --args-file, not both")
    after = deepcopy(before)
    if args is not None:
        after = parsed(args, "--args")
    if file is not None:
        after = parsed(read(file), str(file))
    for setting in settings:
        path, sign, value = setting.partition("=")
        if not sign or not path:
            raise Invalid(f"--set {setting!r}: write it as name=value, such as amount=50")
        after = _put(after, path.split("."), _value(value), path)
    return after


def changes(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """`amount: 100 → 50`, one line per changed field, even if only its text differs (598 and 598.0)."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from changes(before.get(name, _NOTHING), after.get(name, _NOTHING), canonical.join(path, name))
    elif _text(before) != _text(after):
        new = MASK if before == MASK else _text(after)  # neither the old nor the new secret is printed
        yield f"{escaped(path) or 'all'}: {_text(before)} → {new}"


def parsed(text: str, origin: str) -> Json:
    try:
        return canonical.parse(text)
    except canonical.JsonError as error:
        raise Invalid(f"{origin} is not JSON: {error}") from None


def text(given: str | None, file: Path | None, option: str) -> str:
    """The text of an option, of a file, or typed at a prompt of the terminal."""
    if given is not None and file is not None:
        raise Invalid(f"use {option} or {option}-file, not both")
    if file is not None:
        return sys.stdin.read() if str(file) == "-" else read(file)
    if given is None and sys.stdin.isatty():
        return str(typer.prompt(option.removeprefix("--"), err=True))
    if given is None:
        raise Invalid(f"{option} is required", hint=f"{option} TEXT, or {option}-file FILE")
    return given


def read(file: Path) -> str:
    if not file.is_file():
        raise NotFound(f"file not found: {file}")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Invalid(f"{file} is not UTF-8 text") from None


def _value(text: str) -> Json:
    """JSON if it parses, else the text itself: 50 is a number, "50" and fifty are texts."""
    try:
        return canonical.parse(text)
    except canonical.JsonError:
        return text


def _put(holder: Json, path: Sequence[str], value: Json, whole: str) -> Json:
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(holder, list) and name.isdecimal() and int(name) < len(holder):
        return [_put(item, rest, value, whole) if index == int(name) else item for index, item in enumerate(holder)]
    if holder is None or isinstance(holder, dict):
        held = holder or {}
        return {**held, name: _put(held.get(name), rest, value, whole)}
    raise Invalid(f"--set {whole}: there is no field {name!r}", hint="replace all arguments with --args")


def _text(value: Any) -> str:
    return "nothing" if value is _NOTHING else escaped(canonical.text(value))
