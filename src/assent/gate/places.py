"""The places where gates keep their records: the server that runs the graph, a server elsewhere, or a local inbox."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TypeAlias

from assent.gate.elsewhere.inbox import RemoteInbox
from assent.gate.inbox import LocalInbox
from assent.gate.keeper import current_keeper
from assent.gate.records import Keeper
from assent.settings import load

Place: TypeAlias = Keeper | str
"""A keeper, the address of an Assent server, a `postgresql://` URL, or the path of a local file."""


def keeper_for(place: Place | None) -> Keeper:
    """The server's keeper where one runs the graph; else the author's; else what the settings name."""
    return current_keeper() or (default_keeper() if place is None else _named(place))


async def akeeper_for(place: Place | None) -> Keeper:
    """The same on an event loop: reading the settings blocks."""
    current = current_keeper()
    return current if current is not None else await asyncio.to_thread(keeper_for, place)


def checked(place: Place | None) -> Place | None:
    """The place; raises for an address that cannot be used."""
    if place is not None:
        _named(place)
    return place


@cache
def default_keeper() -> Keeper:
    """The server that the settings name with `url`, or the file in this directory."""
    is_set = load({}).origins["url"] != "default"
    return RemoteInbox() if is_set else LocalInbox()


def _named(place: Place) -> Keeper:
    return _at(place) if isinstance(place, str) else place


@cache
def _at(address: str) -> Keeper:
    return RemoteInbox(address) if address.startswith(("http://", "https://")) else LocalInbox(address)
