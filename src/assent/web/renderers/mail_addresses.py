"""Mail addresses as agents write them: which domain they really go to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assent.domain.canonical import Json
from assent.web.language import gettext as _
from assent.web.renderers.blocks import Value
from assent.web.renderers.plain import plain
from assent.web.renderers.reading import entries, mapping, text

_BETWEEN = re.compile(r"""((?:"[^"]*"|<[^<>]*>|[^,;\n"<]|["<])+)""")
_IN_BRACKETS = re.compile(r"<([^<>]*)>\s*\Z")
_PLAIN = re.compile(r"[^\s@<>\"',;()]+@([^\s@<>\"',;()]+)")


def people(value: Json) -> list[str]:
    """Everyone named: in one text, in a list, or in objects with `email` and `name`."""
    found = (_named(one) for one in entries(value))
    return [one for written in found for one in written]


def domain(address: str) -> str:
    """Where mail to it goes; nothing where that cannot be told for sure."""
    inner = _IN_BRACKETS.search(address)
    found = _PLAIN.fullmatch((inner[1] if inner else address).strip())
    return found[1].lower().rstrip(".") if found else ""


def noted(addresses: Iterable[str], home: str) -> list[Value]:
    """With a remark beside those that are not at home."""
    return [Value(one, _note(one, home), odd=True) for one in addresses]


def outside(addresses: Iterable[str], home: str) -> list[str]:
    return [one for one in addresses if home and domain(one) != home]


def _note(address: str, home: str) -> str:
    found = domain(address)
    if not found:
        return _("not a plain address")
    return _("external") if home and found != home else ""


def _named(value: Json) -> list[str]:
    if isinstance(value, str):
        return [one.strip() for one in _BETWEEN.findall(value) if one.strip()]
    found = mapping(value)
    address, name = text(found, "email", "address"), text(found, "name", "display_name", "displayName")
    if address:
        return [f"{name} <{address}>" if name else address]
    return [plain(value)]
