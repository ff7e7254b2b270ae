"""Mentions: `@name` in a comment names a person of the tenant. Any other text after an @ is plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from assent.identity.model.access import Scope
from assent.identity.rows import users
from assent.kernel.store.transaction import Tx
from assent.review.rows import mentions

_MOST = 50
_LONGEST_NAME = 200
_SIGN = re.compile(r"(?<![\w@])@(?=\w)")
"""Not in the middle of a word, such as in an address of a mail."""


class Named(NamedTuple):
    """A mention: where it is in the text, with its sign, and the name as it is spelled there."""

    start: int
    end: int
    name: str


def named_in(text: str, names: Iterable[str]) -> Iterator[Named]:
    """Each mention of one of these names, without regard to case; of several names the longest."""
    folded = sorted({name.casefold(): name for name in names}.items(), key=lambda pair: -len(pair[0]))
    for sign in list(_SIGN.finditer(text))[:_MOST]:
        tail = text[sign.end() : sign.end() + _LONGEST_NAME]
        name = next((name for low, name in folded if _begins(tail, name, low)), None)
        if name is not None:
            yield Named(sign.start(), sign.end() + len(name), name)


def _begins(tail: str, name: str, folded: str) -> bool:
    """Whether the text begins with this name, as a whole word."""
    follows = tail[len(name) : len(name) + 1]
    return tail[: len(name)].casefold() == folded and not (follows.isalnum() or follows == "_")


def note(tx: Tx, item_id: str, comment_id: str, text: str) -> list[str]:
    """Records the people whom the comment mentions, and returns their actors. Only people who can see the item count:
    members of the tenant with the right to read items."""
    if not _SIGN.search(text):
        return []
    people = {user.name: user.actor for user in users.active(tx) if user.may(Scope.ITEMS_READ)}
    actors = list(dict.fromkeys(people[named.name] for named in named_in(text, people)))
    for actor in actors:
        mentions.add(tx, item_id, comment_id, actor)
    return actors
