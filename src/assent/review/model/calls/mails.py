"""Mails: the people who would receive one, and which of them are outside the sender's domain."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.calls.arguments import Args, entries, first, mapping, text
from assent.review.model.calls.cautions import Caution

FROM = ("from", "from_", "sender", "from_email", "from_address")
TO = {"To": ("to", "recipients", "recipient"), "Cc": ("cc",), "Bcc": ("bcc",), "Reply to": ("reply_to", "replyTo")}
BODY = ("body", "text", "content", "message", "body_text")
HTML = ("html", "body_html", "html_body")
_SENDS = re.compile(r"(?i)mail")
_BETWEEN = re.compile(r"""((?:"[^"]*"|<[^<>]*>|[^,;\n"<]|["<])+)""")
_IN_BRACKETS = re.compile(r"<([^<>]*)>\s*\Z")
_PLAIN = re.compile(r"[^\s@<>\"',;()]+@([^\s@<>\"',;()]+)")


def sends_mail(name: str, args: Args) -> bool:
    worded = isinstance(args.get("subject"), str) and bool(text(args, *BODY, *HTML))
    return bool(_SENDS.search(name)) and first(args, *TO["To"]) is not None and worded


def home(args: Args) -> str:
    """The domain of the sender; empty if unknown."""
    return next(filter(None, map(domain, people(first(args, *FROM)))), "")


def external(args: Args) -> list[str]:
    """The recipients outside the sender's domain, each once."""
    own = home(args)
    return list(dict.fromkeys(person for names in TO.values() for person in outside(recipients(args, names), own)))


def cautions(args: Args) -> list[Caution]:
    others = external(args)
    return [Caution(f"Recipients outside {home(args)}.", ", ".join(others))] if others else []


def recipients(args: Args, names: Iterable[str]) -> list[str]:
    """The recipients under all alternative argument names."""
    return [person for name in names for person in people(args.get(name))]


def people(value: Json) -> list[str]:
    """All addresses in a text, a list, or objects with `email` and `name`."""
    return [address for entry in entries(value) for address in _named(entry)]


def domain(address: str) -> str:
    """The domain of an address; empty if ambiguous."""
    inner = _IN_BRACKETS.search(address)
    match = _PLAIN.fullmatch((inner[1] if inner else address).strip())
    return match[1].lower().rstrip(".") if match else ""


def outside(addresses: Iterable[str], own: str) -> list[str]:
    return [address for address in addresses if own and domain(address) != own]


def _named(value: Json) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in _BETWEEN.findall(value) if part.strip()]
    person = mapping(value)
    address, name = text(person, "email", "address"), text(person, "name", "display_name", "displayName")
    if address:
        return [f"{name} <{address}>" if name else address]
    return [canonical.text(value)]
