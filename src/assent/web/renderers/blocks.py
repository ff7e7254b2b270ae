"""What a renderer returns: blocks of plain data, which our own templates draw.

No markup gets in here: every text becomes a plain string when a block is made, also one that calls itself safe. A block
that cannot be drawn cannot be made either, so that a mistake shows in its renderer and not in the middle of a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assent.domain import canonical
from assent.web import diffs
from assent.web.diffs import Change
from assent.web.renderers import amounts, hosts
from assent.web.renderers.plain import LONGEST_VALUE, MOST_ROWS, cut, plain

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
    """A few words, with an icon of ours, above the blocks that follow."""

    kind: ClassVar[str] = "heading"
    text: str
    icon: str = "request"

    def __post_init__(self) -> None:
        icon = plain(self.icon)
        _set(self, text=plain(self.text), icon=icon if _ICON.fullmatch(icon) else "request")


@dataclass(frozen=True, slots=True)
class Value:
    """What stands for a label, and a remark of the renderer beside it, which may be one to look at twice."""

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
    """Labels and what stands for them: one value, or a list of them. What is None or an empty list is left out."""

    kind: ClassVar[str] = "facts"
    rows: tuple[Fact, ...]
    more: int

    def __init__(self, rows: Mapping[str, object] | Iterable[tuple[str, object]]) -> None:
        pairs = list(rows.items() if isinstance(rows, Mapping) else rows)
        facts = tuple(Fact(plain(label), _values(value)) for label, value in pairs if value not in (None, [], ()))
        _set(self, rows=facts[:MOST_ROWS], more=max(0, len(facts) - MOST_ROWS))


def _values(value: object) -> tuple[Value, ...]:
    several = value if isinstance(value, list | tuple) else [value]
    drawn = [one if isinstance(one, Value) else Value(plain(one)) for one in several[:MOST_ROWS]]
    left = len(several) - MOST_ROWS
    return (*drawn, Value(f"+{left}")) if left > 0 else tuple(drawn)


@dataclass(frozen=True, slots=True)
class Text(Block):
    """Text as it is, line by line; `large` for the one thing to read."""

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
    """What an agent wrote, labelled as its words."""

    kind: ClassVar[str] = "markdown"
    text: str
    label: str = "The agent’s words"

    def __post_init__(self) -> None:
        _set(self, text=plain(self.text), label=plain(self.label))


@dataclass(frozen=True, slots=True, init=False)
class Diff(Block):
    """Old and new, field by field. `Diff.between` finds the fields."""

    kind: ClassVar[str] = "diff"
    changes: tuple[Change, ...]
    more: int

    def __init__(self, changes: Iterable[Change]) -> None:
        found = [Change(plain(one.path), _side(one.old), _side(one.new)) for one in changes]
        _set(self, changes=tuple(found[:MOST_ROWS]), more=max(0, len(found) - MOST_ROWS))

    @classmethod
    def between(cls, before: Any, after: Any) -> Diff:
        return cls(diffs.of_args(before, after))


def _side(text: str | None) -> str | None:
    if text is None:
        return None
    kept, more = cut(plain(text))
    return f"{kept}… (+{more})" if more else kept


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
    """Names with sizes, in bytes."""

    kind: ClassVar[str] = "files"
    files: tuple[File, ...]
    more: int

    def __init__(self, files: Iterable[File]) -> None:
        found = [File(one.name, one.size, one.type) for one in files]
        _set(self, files=tuple(found[:MOST_ROWS]), more=max(0, len(found) - MOST_ROWS))


@dataclass(frozen=True, slots=True)
class Money(Block):
    """An amount, digit for digit: nothing is rounded, and no digits are added."""

    kind: ClassVar[str] = "money"
    amount: Any
    currency: str
    label: str = "Amount"

    def __post_init__(self) -> None:
        amount = Value(amounts.grouped(plain(self.amount))).text
        _set(self, amount=amount, currency=Value(self.currency).text, label=plain(self.label))


@dataclass(frozen=True, slots=True, init=False)
class Table(Block):
    """Rows under column titles; `more` counts those that are left out."""

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    more: int

    def __init__(self, columns: Iterable[str], rows: Iterable[Iterable[object]], more: int = 0) -> None:
        titles = tuple(map(plain, columns))
        found = [tuple(Value(plain(cell)) for cell in row) for row in rows]
        if any(len(row) != len(titles) for row in found):
            raise ValueError(f"every row of this table needs {len(titles)} cells")
        _set(self, columns=titles, rows=tuple(found[:MOST_ROWS]), more=int(more) + max(0, len(found) - MOST_ROWS))


@dataclass(frozen=True, slots=True)
class Caution(Block):
    """Something to look at before deciding, and where it was seen."""

    kind: ClassVar[str] = "caution"
    text: str
    detail: str = ""

    def __post_init__(self) -> None:
        _set(self, text=Value(self.text).text, detail=Value(self.detail).text)


@dataclass(frozen=True, slots=True)
class Link(Block):
    """An address to open, with its whole host in sight. One that is not plainly http or https is shown as text."""

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
    """What a person sees beside the exact arguments. None among the blocks, and facts without a row, are left out."""

    blocks: tuple[Block, ...]

    def __init__(self, *blocks: Block | None) -> None:
        given = tuple(one for one in blocks if one is not None and one != _NO_FACTS)
        strange = next((one for one in given if type(one) not in BLOCKS), None)
        if strange is not None:
            raise TypeError(f"{type(strange).__name__} is not a block of assent.web.renderers")
        _set(self, blocks=given)
