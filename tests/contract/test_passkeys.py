"""Signatures of passkeys on real databases: for one decision of one person, once, in time, with a growing counter."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from assent.errors import ConfirmationRefused, ConfirmationRequired, Conflict, StaleRevision
from assent.identity import assertions
from assent.identity.model.access import Principal
from assent.identity.model.passkeys import LIFETIME, Party, Passkey, Proof
from assent.identity.model.users import User
from assent.identity.rows import challenges, passkeys, users
from assent.kernel import events
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.review.decisions import decide as deciding
from assent.review.decisions import undo
from assent.review.decisions.decide import Proposal
from assent.review.model.items import Item, ItemStatus
from assent.review.model.policies import from_json
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import items, policies
from tests.authenticator import PRESENT, VERIFIED, Authenticator, text
from tests.contract.asks import confirmation, person, wait_for
from tests.contract.stores import AnyStore, all_at_once

ACME, OTHER = "acme", "other"
ANA, BEN = person("ana", ACME), person("ben", ACME)
HERE = Party("localhost", "http://localhost:2024")
PAY = confirmation("c", "pay", {"n": 1})
RULE: dict[str, Any] = {"name": "pay", "then": "ask", "tool": "*", "confirm": "passkey"}


async def put(store: AnyStore, *rules: dict[str, Any], tenant: str = ACME) -> None:
    await store.write(tenant, policies.put, from_json({"rules": rules}), source="api", actor="system")


async def one(store: AnyStore, thread: str = "t", question: Any = PAY) -> Item:
    [item] = await store.write(ACME, wait_for, thread, i=question)
    return item


async def device(store: AnyStore, person: Principal, *, count: int = 0) -> Authenticator:
    """Registered for this person."""
    made = Authenticator(HERE.origin, count=count)

    def write(tx: Tx) -> None:
        users.insert(tx, User(person.id, person.name, None, "reviewer", tx.now(), None))  # type: ignore[arg-type]
        passkey = Passkey(
            new_id(),
            person.id,
            text(made.credential_id),
            made._public_key(),
            count,
            HERE.id,
            "laptop",
            (),
            tx.now(),
            None,
        )
        assert passkeys.insert(tx, passkey)

    await assertions.load()
    await store.write(person.tenant, write)
    return made


def approval(item: Item, verb: Verb = Verb.APPROVE, **more: Any) -> Proposal:
    said = Verdict("0", verb, more.pop("args", None), message="no" if verb is Verb.REJECT else None)
    return Proposal(item.revision, item.hash, (said,), **more)


async def asked(store: AnyStore, who: Principal, item: Item, said: Proposal) -> dict[str, Any]:
    options = await store.write(who.tenant, deciding.to_confirm, who, item.id, said, HERE)
    assert options is not None
    return options


def deciding_with(who: Principal, item: Item, said: Proposal, answer: Any) -> Callable[[Tx], Item]:
    return lambda tx: deciding.decide(tx, who, item.id, said, Proof(answer, HERE))


async def decide(store: AnyStore, who: Principal, item: Item, said: Proposal, answer: Any) -> Item:
    return await store.write(who.tenant, deciding_with(who, item, said, answer))


async def test_a_signed_approval_counts_and_the_timeline_names_the_passkey(store: AnyStore) -> None:
    await put(store, RULE)
    key, item = await device(store, ANA), await one(store)
    done = await decide(store, ANA, item, approval(item), key.get(await asked(store, ANA, item, approval(item))))
    assert done.status is ItemStatus.APPROVED
    [own] = await store.read(ACME, passkeys.of_person, ANA.id)
    assert (own.sign_count, own.last_used_at is not None) == (1, True)
    told = await store.read(ACME, events.of_subject, item.subject)
    assert any(event.kind == "item.approved" and own.id in str(payload) for event, payload in told)


async def test_control_without_the_rule_nothing_has_to_be_signed(store: AnyStore) -> None:
    await put(store, {**RULE, "confirm": None})
    item = await one(store)
    assert await store.write(ACME, deciding.to_confirm, ANA, item.id, approval(item), HERE) is None
    assert (await store.write(ACME, deciding.decide, ANA, item.id, approval(item))).status is ItemStatus.APPROVED


async def test_approval_without_a_signature_is_refused_and_rejection_is_not(store: AnyStore) -> None:
    await put(store, RULE)
    item = await one(store)
    with pytest.raises(ConfirmationRequired, match="nobody has registered one"):
        await store.write(ACME, deciding.decide, ANA, item.id, approval(item))
    await device(store, BEN)
    with pytest.raises(ConfirmationRequired, match="you have registered none"):
        await store.write(ACME, deciding.decide, ANA, item.id, approval(item))
    await device(store, ANA)
    with pytest.raises(ConfirmationRequired) as refused:
        await store.write(ACME, deciding.decide, ANA, item.id, approval(item))
    assert (refused.value.extra["url"], refused.value.extra["confirm"]) == (f"/inbox/{item.id}", "passkey")
    rejected = approval(item, Verb.REJECT)
    assert await store.write(ACME, deciding.to_confirm, ANA, item.id, rejected, HERE) is None
    assert (await store.write(ACME, deciding.decide, ANA, item.id, rejected)).status is ItemStatus.REJECTED


async def test_signature_counts_once(store: AnyStore) -> None:
    await put(store, {**RULE, "approvals": 2})
    key, item = await device(store, ANA), await one(store)
    answer = key.get(await asked(store, ANA, item, approval(item)))
    await decide(store, ANA, item, approval(item), answer)
    await store.write(ACME, undo.undo, ANA, item.id)
    with pytest.raises(ConfirmationRefused, match="used before, or has expired"):
        await decide(store, ANA, item, approval(item), answer)


async def test_concurrent_uses_of_one_signature_decide_once(store: AnyStore) -> None:
    """On items of one thread each, because on one item the second would be too late anyway."""
    await put(store, {**RULE, "approvals": 2})
    key, item = await device(store, ANA), await one(store)
    answer = key.get(await asked(store, ANA, item, approval(item)))
    attempts = [deciding_with(ANA, item, approval(item), answer) for _ in range(6)]
    outcomes = await all_at_once(store, ACME, *attempts)
    assert sum(isinstance(each, Item) for each in outcomes) == 1, outcomes
    others = [each for each in outcomes if not isinstance(each, Item)]
    assert all(isinstance(each, ConfirmationRefused | Conflict) for each in others), outcomes


async def test_a_decision_that_fails_does_not_use_the_signature_up(store: AnyStore) -> None:
    await put(store, RULE)
    key, item = await device(store, ANA), await one(store)
    answer = key.get(await asked(store, ANA, item, approval(item)))
    stale = approval(item)
    with pytest.raises(StaleRevision):
        await decide(store, ANA, item, Proposal(item.revision, "0" * 64, stale.verdicts), answer)
    assert (await decide(store, ANA, item, approval(item), answer)).status is ItemStatus.APPROVED


async def test_expired_challenge_is_refused(store: AnyStore) -> None:
    await put(store, RULE)
    key, item = await device(store, ANA), await one(store)
    answer = key.get(await asked(store, ANA, item, approval(item)))
    store.clock_offset += LIFETIME + timedelta(seconds=1)
    with pytest.raises(ConfirmationRefused, match="used before, or has expired"):
        await decide(store, ANA, item, approval(item), answer)
    assert await store.write(None, challenges.delete_expired) == 1


async def test_signature_is_bound_to_its_decision(store: AnyStore) -> None:
    await put(store, RULE)
    key, item, another = await device(store, ANA), await one(store), await one(store, "u")
    answer = key.get(await asked(store, ANA, item, approval(item)))
    for about, said in (
        (another, approval(another)),
        (item, approval(item, Verb.EDIT, args={"n": 2})),
        (item, approval(item, notes="by the way")),
    ):
        with pytest.raises(ConfirmationRefused, match="for a different decision"):
            await decide(store, ANA, about, said, answer)
    await store.write(ACME, wait_for, "t", i=confirmation("c", "pay", {"n": 9}))
    revised = await store.read(ACME, items.get, item.id)
    assert revised is not None
    assert revised.revision == 2
    with pytest.raises(ConfirmationRefused, match="for a different decision"):
        await decide(store, ANA, revised, approval(revised), answer)


async def test_signature_of_another_person_is_refused(store: AnyStore) -> None:
    await put(store, RULE)
    anas, bens, item = await device(store, ANA), await device(store, BEN), await one(store)
    answer = anas.get(await asked(store, ANA, item, approval(item)))
    with pytest.raises(ConfirmationRefused, match="used before, or has expired"):
        await decide(store, BEN, item, approval(item), answer)
    options = await asked(store, BEN, item, approval(item))
    with pytest.raises(ConfirmationRefused, match="not registered for you"):
        await decide(store, BEN, item, approval(item), anas.get(options))
    assert (await decide(store, BEN, item, approval(item), bens.get(options))).status is ItemStatus.APPROVED


async def test_passkey_of_another_tenant_is_refused(store: AnyStore) -> None:
    await put(store, RULE)
    await device(store, person("ana", OTHER))
    item = await one(store)
    with pytest.raises(ConfirmationRequired, match="nobody has registered one"):
        await store.write(ACME, deciding.to_confirm, ANA, item.id, approval(item), HERE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flags": PRESENT}, "user verification is required"),
        ({"flags": VERIFIED}, "user was not present"),
        ({"origin": "http://evil.example"}, "unexpected client data origin"),
        ({"party": "evil.example"}, "unexpected RP ID hash"),
        ({"type": "webauthn.create"}, "unexpected client data type"),
        ({"crossOrigin": True}, "not a passkey response"),
        ({"count": 3}, "sign count of 3 was not greater than current count of 7"),
        ({"count": 7}, "sign count of 7 was not greater than current count of 7"),
        ({"count": 0}, "sign count of 0 was not greater than current count of 7"),
    ],
    ids=str,
)
async def test_invalid_signature_is_refused_and_nothing_is_decided(
    store: AnyStore, changes: dict[str, Any], said: str
) -> None:
    await put(store, RULE)
    key, item = await device(store, ANA, count=7), await one(store)
    options = await asked(store, ANA, item, approval(item))
    with pytest.raises(ConfirmationRefused, match=said):
        await decide(store, ANA, item, approval(item), key.get(options, **changes))
    current = await store.read(ACME, items.get, item.id)
    assert current == item
    key.count = 7
    assert (await decide(store, ANA, item, approval(item), key.get(options))).status is ItemStatus.APPROVED


async def test_a_signature_by_another_key_is_refused(store: AnyStore) -> None:
    await put(store, RULE)
    key, item = await device(store, ANA), await one(store)
    forged = Authenticator(HERE.origin, credential_id=key.credential_id)
    options = await asked(store, ANA, item, approval(item))
    with pytest.raises(ConfirmationRefused, match="could not verify authentication signature"):
        await decide(store, ANA, item, approval(item), forged.get(options))


@pytest.mark.parametrize("answer", [{}, {"id": 1}, {"response": []}, {"response": {"clientDataJSON": "e30"}}], ids=str)
async def test_malformed_assertion_is_refused(store: AnyStore, answer: dict[str, Any]) -> None:
    await put(store, RULE)
    await device(store, ANA)
    item = await one(store)
    with pytest.raises(ConfirmationRefused, match="not a passkey response"):
        await decide(store, ANA, item, approval(item), answer)


async def test_each_of_several_approvers_needs_their_own_signature(store: AnyStore) -> None:
    await put(store, {**RULE, "approvals": 2})
    anas, bens, item = await device(store, ANA), await device(store, BEN), await one(store)
    first = await decide(store, ANA, item, approval(item), anas.get(await asked(store, ANA, item, approval(item))))
    assert (first.status, first.approvals) == (ItemStatus.PENDING, 1)
    with pytest.raises(ConfirmationRequired):
        await store.write(ACME, deciding.decide, BEN, item.id, approval(item))
    second = await decide(store, BEN, item, approval(item), bens.get(await asked(store, BEN, item, approval(item))))
    assert second.status is ItemStatus.APPROVED


async def test_edit_into_or_out_of_the_rule_needs_a_signature(store: AnyStore) -> None:
    large = {**RULE, "name": "large", "when": "args.n > 100"}
    await put(store, large, {"name": "rest", "then": "ask", "tool": "*"})
    key, item = await device(store, ANA), await one(store)
    said = approval(item, Verb.EDIT, args={"n": 500})
    with pytest.raises(ConfirmationRequired):
        await store.write(ACME, deciding.decide, ANA, item.id, said)
    done = await decide(store, ANA, item, said, key.get(await asked(store, ANA, item, said)))
    assert done.status is ItemStatus.APPROVED
    big = await one(store, "u", confirmation("c", "pay", {"n": 500}))
    small = approval(big, Verb.EDIT, args={"n": 1})
    with pytest.raises(ConfirmationRequired):
        await store.write(ACME, deciding.decide, ANA, big.id, small)


async def test_new_challenge_replaces_the_last(store: AnyStore) -> None:
    await put(store, RULE)
    key, item = await device(store, ANA), await one(store)
    before = await asked(store, ANA, item, approval(item))
    now = await asked(store, ANA, item, approval(item))
    with pytest.raises(ConfirmationRefused, match="used before, or has expired"):
        await decide(store, ANA, item, approval(item), key.get(before))
    assert (await decide(store, ANA, item, approval(item), key.get(now))).status is ItemStatus.APPROVED


async def test_the_same_passkey_is_registered_once(store: AnyStore) -> None:
    await device(store, ANA)
    [own] = await store.read(ACME, passkeys.of_person, ANA.id)
    again = partial(passkeys.insert, passkey=Passkey(**{**_fields(own), "id": new_id()}))
    assert await store.write(ACME, again) is False


def _fields(passkey: Passkey) -> dict[str, Any]:
    return {name: getattr(passkey, name) for name in Passkey.__slots__}
