"""Names of the actors on a page. The timeline stores only ids, so that names can be erased."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assent.identity.model.access import Principal
from assent.identity.rows import keys, users
from assent.identity.rows.agents import agent_of
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.collaboration.mentions import named_in
from assent.review.samples import PREFIX
from assent.surfaces.web.language import gettext as _
from assent.threads.rows.remote import deployments

_SHORT = 32
"""Longer ids are random; their last characters are enough to distinguish them."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of actors, as shown to one reader."""

    me: str
    known: Mapping[str, str] = field(default_factory=dict)
    own: str = ""

    def knowing(self, others: Names) -> Names:
        """Returns these names merged with others."""
        return Names(self.me, {**self.known, **others.known}, self.own)

    def of(self, actor: str | None) -> str:
        if not actor:
            return "–"
        if actor == self.me:
            return _("you")
        kind, id = actor.partition(":")[::2]
        short = id if len(id) <= _SHORT else f"{kind} {id[-8:]}"
        return self.known.get(actor) or short or actor

    def parts(self, text: str, mentioned: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """The text in parts; a part is a mention of one of these actors, or plain."""
        known = {self.me: self.own, **self.known}
        at = 0
        for named in named_in(text, [known[actor] for actor in mentioned if known.get(actor)]):
            yield text[at : named.start], False
            yield text[named.start : named.end], True
            at = named.end
        yield text[at:], False


async def names(store: Store, reader: Principal, actors: Iterable[str | None]) -> Names:
    wanted = sorted({actor for actor in actors if actor and actor != reader.actor})
    return Names(reader.actor, await store.read(reader.tenant, _names, wanted) if wanted else {}, reader.name)


def _names(tx: Tx, actors: list[str]) -> dict[str, str]:
    names = {actor: _name(tx, *actor.partition(":")[::2]) for actor in actors}
    return {actor: name for actor, name in names.items() if name}


def _name(tx: Tx, kind: str, id: str) -> str | None:
    if id.startswith(PREFIX):
        return _("%(name)s (sample)") % {"name": id.removeprefix(PREFIX)}
    if kind == "reviewer":
        user = users.by_id(tx, id)
        return user.name if user else None
    if kind == "deployment":
        deployment = deployments.get(tx, id)
        return deployment.name if deployment else None
    if kind == "agent":
        name = agent_of(tx, f"{kind}:{id}").name
        return None if name == id else name
    key = keys.by_id(tx, id) if kind == "service" else None
    return key.name if key else None
