"""The host of a URL, parsed strictly so that browsers cannot disagree."""

from __future__ import annotations

import re
import unicodedata

_ADDRESS = re.compile(r"(?i:https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(?:[/?#][!-\[\]-~]*)?")
_NUMBERS = re.compile(r"\[.*\]|[0-9.]+")
_PUNYCODE = "xn--"


def of(address: str) -> str:
    """The host with its port, if any; empty unless the URL is plain http or https."""
    match = _ADDRESS.fullmatch(address)
    return (match[1] + (match[2] or "")).lower() if match else ""


def spelled_out(host: str) -> str:
    """A punycode host with its decoded letters and their scripts, because `apple` has look-alikes."""
    letters = unicode(host)
    return host if letters == host else f"{host} ({', '.join((letters, *scripts(letters)))})"


def scripts(text: str) -> list[str]:
    """The scripts of the non-ASCII letters, such as `Cyrillic`."""
    names = (unicodedata.name(char, "unknown") for char in text if not char.isascii())
    return sorted({name.split()[0].capitalize() for name in names})


def unicode(host: str) -> str:
    return ".".join(map(_label, host.split(".")))


def is_number(host: str) -> bool:
    """Whether the host is an IP address."""
    return bool(_NUMBERS.fullmatch(re.sub(r"(?<!:):[0-9]+\Z", "", host)))


def _label(label: str) -> str:
    if not label.startswith(_PUNYCODE):
        return label
    try:
        return label[len(_PUNYCODE) :].encode("ascii").decode("punycode")
    except (UnicodeError, OverflowError, ValueError):
        return label
