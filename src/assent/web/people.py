"""Names for the actors of a page. The timeline knows ids only, so that names can be erased; a page shows the names that
there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assent.domain.access import Principal
from assent.ports import Store
from assent.store import keys, users
from assent.store.transaction import Tx
from assent.web.language import gettext as _

_SHORT = 32
"""Longer ids are random ones, of which a few characters tell them apart as well."""


@dataclass(frozen=True, slots=True)
class Names:
    """How one reader of a page knows the others."""

    me: str
    known: Mapping[str, str] = field(default_factory=dict)

    def knowing(self, others: Names) -> Names:
        """The same, with the names that others brought along."""
        return Names(self.me, {**self.known, **others.known})

    def of(self, actor: str | None) -> str:
        if not actor:
            return "–"
        if actor == self.me:
            return _("you")
        kind, id = actor.partition(":")[::2]
        short = id if len(id) <= _SHORT else f"{kind} {id[-8:]}"
        return self.known.get(actor) or short or actor


async def names(store: Store, reader: Principal, actors: Iterable[str | None]) -> Names:
    wanted = sorted({actor for actor in actors if actor and actor != reader.actor})
    return Names(reader.actor, await store.read(reader.tenant, _names, wanted) if wanted else {})


def _names(tx: Tx, actors: list[str]) -> dict[str, str]:
    found = {actor: _name(tx, *actor.partition(":")[::2]) for actor in actors}
    return {actor: name for actor, name in found.items() if name}


def _name(tx: Tx, kind: str, id: str) -> str | None:
    if kind == "reviewer":
        user = users.by_id(tx, id)
        return user.name if user else None
    key = keys.by_id(tx, id) if kind in ("agent", "service") else None
    return key.name if key else None
