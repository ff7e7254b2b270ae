"""The owner of an item: the person who takes care of it. Everyone who may decide it still may."""

from __future__ import annotations

from assent.errors import Conflict, Forbidden, Invalid
from assent.identity.model.access import Kind, Principal, Scope
from assent.identity.model.users import User
from assent.identity.rows import users
from assent.identity.rows.names import actors_named
from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Item
from assent.review.rows import items
from assent.review.search import item_index

ME = "me"
_PERSON = f"{Kind.REVIEWER}:"


def assign(tx: Tx, caller: Principal, item: Item, person: str | None) -> None:
    """Assigns the locked item to a person, by name or id, or to nobody."""
    if not (caller.is_person and caller.may(Scope.DECIDE)):
        raise Forbidden(f"{caller.kind} {caller.name!r} may not assign items", missing=[Scope.DECIDE.value])
    if not item.status.open:
        raise Conflict(f"the item is {item.status}: only a pending item is assigned")
    owner = None if person is None else _owner(tx, caller, person)
    if owner != item.owner:
        _set(tx, caller, item, owner)


def inherited(tx: Tx, earlier: Item | None) -> str | None:
    """The owner of an item that follows an earlier one."""
    user = users.by_id(tx, earlier.owner.removeprefix(_PERSON)) if earlier and earlier.owner else None
    return user.actor if user and user.may(Scope.DECIDE) else None


def release_all(tx: Tx, caller: Principal, user: User) -> None:
    """The person may no longer decide: their pending items have no owner."""
    for item in items.owned_by(tx, user.actor):
        _set(tx, caller, item, None)


def _set(tx: Tx, caller: Principal, item: Item, owner: str | None) -> None:
    item_index.index(tx, items.change(tx, item, owner=owner))
    told = {"owner": owner} if owner else {"from": item.owner}
    events.append(tx, caller, "item.assigned" if owner else "item.unassigned", item.subject, told)


def _owner(tx: Tx, caller: Principal, person: str) -> str:
    if person == ME:
        return caller.actor
    spelled = (users.by_id(tx, person.removeprefix(_PERSON)), *_named(tx, person))
    owner = next((user for user in spelled if user is not None and user.may(Scope.DECIDE)), None)
    if owner is None:
        raise Invalid(f"there is no reviewer {person!r}", hint="use the name of a person who may decide, or me")
    return owner.actor


def _named(tx: Tx, name: str) -> list[User | None]:
    people = (actor for actor in actors_named(tx, name) if actor.startswith(_PERSON))
    return [users.by_id(tx, actor.removeprefix(_PERSON)) for actor in people]
