"""Whose page an address leads to, read so that a browser cannot read it differently."""

from __future__ import annotations

import re
import unicodedata

_ADDRESS = re.compile(r"(?i:https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(?:[/?#][!-\[\]-~]*)?")
_NUMBERS = re.compile(r"\[.*\]|[0-9.]+")
_PUNYCODE = "xn--"


def of(address: str) -> str:
    """The host, with its port where one is given; nothing where the address is not plainly http or https."""
    found = _ADDRESS.fullmatch(address)
    return (found[1] + (found[2] or "")).lower() if found else ""


def spelled_out(host: str) -> str:
    """A host in punycode with the letters that it stands for, and whose letters they are: `apple` has look-alikes."""
    letters = unicode(host)
    return host if letters == host else f"{host} ({', '.join((letters, *scripts(letters)))})"


def scripts(text: str) -> list[str]:
    """The alphabets of a text besides ours, as the names of its letters tell them: `Cyrillic`."""
    strange = (unicodedata.name(char, "unknown") for char in text if not char.isascii())
    return sorted({name.split()[0].capitalize() for name in strange})


def unicode(host: str) -> str:
    return ".".join(map(_label, host.split(".")))


def is_number(host: str) -> bool:
    """An address of a machine in place of a name."""
    return bool(_NUMBERS.fullmatch(re.sub(r"(?<!:):[0-9]+\Z", "", host)))


def _label(label: str) -> str:
    if not label.startswith(_PUNYCODE):
        return label
    try:
        return label[len(_PUNYCODE) :].encode("ascii").decode("punycode")
    except (UnicodeError, OverflowError, ValueError):
        return label
