"""Blocks of plain data that renderers return and our templates draw.

Blocks contain no markup: every text becomes a plain string, even a `Markup`. The constructors validate, so that an
error appears in the renderer and not in the middle of a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assent.kernel import canonical
from assent.surfaces.web.renderers.plain import LONGEST_VALUE, MOST_ROWS, cut, plain
from assent.surfaces.web.renderers.values import amounts, hosts
from assent.surfaces.web.text import diffs
from assent.surfaces.web.text.diffs import Change

_ICON = re.compile(r"[a-z][a-z-]*")


def _set(block: object, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(block, name, value)


class Block:
    """One part of a rendering."""

    __slots__ = ()
    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Heading(Block):
    """A title with an icon, above the following blocks."""

    kind: ClassVar[str] = "heading"
    text: str
    icon: str = "request"

    def __post_init__(self) -> None:
        icon = plain(self.icon)
        _set(self, text=plain(self.text), icon=icon if _ICON.fullmatch(icon) else "request")


@dataclass(frozen=True, slots=True)
class Value:
    """A value with an optional note; `odd` highlights the note."""

    text: str
    note: str = ""
    odd: bool = False
    more: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        text, more = cut(plain(self.text), LONGEST_VALUE)
        _set(self, text=text, note=plain(self.note), odd=bool(self.odd), more=more)


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, init=False)
class Facts(Block):
    """Labels with a value or a list of values. None and empty lists are omitted."""

    kind: ClassVar[str] = "facts"
    rows: tuple[Fact, ...]
    more: int

    def __init__(self, rows: Mapping[str, object] | Iterable[tuple[str, object]]) -> None:
        pairs = list(rows.items() if isinstance(rows, Mapping) else rows)
        facts = tuple(Fact(plain(label), _values(value)) for label, value in pairs if value not in (None, [], ()))
        _set(self, rows=facts[:MOST_ROWS], more=max(0, len(facts) - MOST_ROWS))


def _values(value: object) -> tuple[Value, ...]:
    several = value if isinstance(value, list | tuple) else [value]
    drawn = [entry if isinstance(entry, Value) else Value(plain(entry)) for entry in several[:MOST_ROWS]]
    left = len(several) - MOST_ROWS
    return (*drawn, Value(f"+{left}")) if left > 0 else tuple(drawn)


@dataclass(frozen=True, slots=True)
class Text(Block):
    """Plain text; `large` for the main text."""

    kind: ClassVar[str] = "text"
    text: str
    label: str = ""
    large: bool = False
    more: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        text, more = cut(plain(self.text))
        _set(self, text=text, label=plain(self.label), large=bool(self.large), more=more)


@dataclass(frozen=True, slots=True)
class Code(Block):
    """Numbered lines."""

    kind: ClassVar[str] = "code"
    text: str
    language: str = ""
    label: str = ""
    more: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        text, more = cut(plain(self.text))
        _set(self, text=text, language=plain(self.language), label=plain(self.label), more=more)

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


@dataclass(frozen=True, slots=True)
class Markdown(Block):
    """Markdown by an agent, labelled as such."""

    kind: ClassVar[str] = "markdown"
    text: str
    label: str = "Agent’s explanation"

    def __post_init__(self) -> None:
        _set(self, text=plain(self.text), label=plain(self.label))


@dataclass(frozen=True, slots=True, init=False)
class Diff(Block):
    """Old and new values by field. `Diff.between` computes them."""

    kind: ClassVar[str] = "diff"
    changes: tuple[Change, ...]
    label: str
    more: int

    def __init__(self, changes: Iterable[Change], label: str = "") -> None:
        rows = [Change(plain(change.path), _side(change.old), _side(change.new)) for change in changes]
        _set(self, changes=tuple(rows[:MOST_ROWS]), label=label, more=max(0, len(rows) - MOST_ROWS))

    @classmethod
    def between(cls, before: Any, after: Any, label: str = "") -> Diff:
        return cls(diffs.of_args(before, after), label)


def _side(text: str | None) -> str | None:
    if text is None:
        return None
    start, more = cut(plain(text))
    return f"{start}… (+{more})" if more else start


@dataclass(frozen=True, slots=True)
class File:
    name: str
    size: int | None = None
    type: str = ""

    def __post_init__(self) -> None:
        real = isinstance(self.size, int) and not isinstance(self.size, bool) and 0 <= self.size < canonical.TOO_LONG
        _set(self, name=plain(self.name), size=self.size if real else None, type=plain(self.type))


@dataclass(frozen=True, slots=True, init=False)
class Files(Block):
    """File names with sizes in bytes."""

    kind: ClassVar[str] = "files"
    files: tuple[File, ...]
    more: int

    def __init__(self, files: Iterable[File]) -> None:
        rows = [File(file.name, file.size, file.type) for file in files]
        _set(self, files=tuple(rows[:MOST_ROWS]), more=max(0, len(rows) - MOST_ROWS))


@dataclass(frozen=True, slots=True)
class Money(Block):
    """An amount with its exact digits, without rounding."""

    kind: ClassVar[str] = "money"
    amount: Any
    currency: str
    label: str = "Amount"

    def __post_init__(self) -> None:
        amount = Value(amounts.filled(plain(self.amount), plain(self.currency))).text
        _set(self, amount=amount, currency=Value(self.currency).text, label=plain(self.label))


@dataclass(frozen=True, slots=True, init=False)
class Table(Block):
    """Rows under column titles; `more` counts the omitted rows."""

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    more: int

    def __init__(self, columns: Iterable[str], rows: Iterable[Iterable[object]], more: int = 0) -> None:
        titles = tuple(map(plain, columns))
        cells = [tuple(Value(plain(cell)) for cell in row) for row in rows]
        if any(len(row) != len(titles) for row in cells):
            raise ValueError(f"every row of this table needs {len(titles)} cells")
        _set(self, columns=titles, rows=tuple(cells[:MOST_ROWS]), more=int(more) + max(0, len(cells) - MOST_ROWS))


@dataclass(frozen=True, slots=True)
class Caution(Block):
    """A warning, and the text that caused it."""

    kind: ClassVar[str] = "caution"
    text: str
    detail: str = ""

    def __post_init__(self) -> None:
        _set(self, text=Value(self.text).text, detail=Value(self.detail).text)


@dataclass(frozen=True, slots=True)
class Link(Block):
    """A URL with its full host. A URL that is not plain http or https is shown as text."""

    kind: ClassVar[str] = "link"
    address: str
    label: str = "Open the page"

    def __post_init__(self) -> None:
        _set(self, address=plain(self.address), label=plain(self.label))

    @property
    def host(self) -> str:
        return hosts.spelled_out(hosts.of(self.address))

    @property
    def opens(self) -> bool:
        return bool(hosts.of(self.address)) and len(self.address) <= LONGEST_VALUE


_NO_FACTS = Facts({})
BLOCKS = (Heading, Facts, Text, Code, Markdown, Diff, Files, Money, Table, Caution, Link)


@dataclass(frozen=True, slots=True, init=False)
class Rendering:
    """The blocks shown beside the exact arguments. None and empty facts are omitted."""

    blocks: tuple[Block, ...]

    def __init__(self, *blocks: Block | None) -> None:
        drawn = tuple(block for block in blocks if block is not None and block != _NO_FACTS)
        unknown = next((block for block in drawn if type(block) not in BLOCKS), None)
        if unknown is not None:
            raise TypeError(f"{type(unknown).__name__} is not a block of assent.surfaces.web.renderers")
        _set(self, blocks=drawn)
