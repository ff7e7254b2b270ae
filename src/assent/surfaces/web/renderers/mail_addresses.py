"""Mail addresses with a note on those outside the sender's domain."""

from __future__ import annotations

from collections.abc import Iterable

from assent.review.model.calls.mails import domain, people
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Value

__all__ = ["domain", "noted", "people"]


def noted(addresses: Iterable[str], home: str) -> list[Value]:
    """The addresses, with a note on those outside the domain `home`."""
    return [Value(address, _note(address, home), odd=True) for address in addresses]


def _note(address: str, home: str) -> str:
    host = domain(address)
    if not host:
        return _("not a plain address")
    return _("external") if home and host != home else ""
