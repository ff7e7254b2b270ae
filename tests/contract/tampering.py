"""Someone with their hands on the database: random edits, deletions, swaps and forgeries of the timeline's tables.

All of it is done to the rows in memory and written back as a whole, so that every database is treated the same.
"""

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, delete, select

from assent.kernel import canonical
from assent.kernel.store.tables import event_heads, event_payloads, events
from assent.kernel.timeline import Event, Head, follow

Row = dict[str, Any]
Rows = dict[str, list[Row]]
Dice = random.Random

TABLES = (events, event_payloads, event_heads)
CHAINED = [name for name in Event.__slots__ if name not in {"tenant", "seq"}]


def load(engine: Engine) -> Rows:
    with engine.connect() as connection:
        return {
            table.name: [dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()]
            for table in TABLES
        }


def save(engine: Engine, rows: Rows) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for table in TABLES:
            connection.execute(delete(table))
            if rows[table.name]:
                connection.execute(table.insert(), rows[table.name])
        connection.exec_driver_sql("COMMIT")


def tamper(original: Rows, dice: Dice) -> tuple[str, Rows]:
    """What was done, and the rows after it, which always differ from the original."""
    while True:
        rows = copy.deepcopy(original)
        act = dice.choice(ACTS)
        act(rows, dice)
        if _known(rows) and rows != original:
            return act.__name__, rows


def edit_an_event(rows: Rows, dice: Dice) -> None:
    row = dice.choice(rows["events"])
    column = dice.choice(list(row))
    row[column] = _twisted(row[column], dice, _others(rows["events"], column))


def edit_a_payload(rows: Rows, dice: Dice) -> None:
    row = dice.choice(rows["event_payloads"])
    column = dice.choice(list(row))
    row[column] = _twisted(row[column], dice, _others(rows["event_payloads"], column))


def edit_a_head(rows: Rows, dice: Dice) -> None:
    row = dice.choice(rows["event_heads"])
    column = dice.choice(list(row))
    row[column] = _twisted(row[column], dice, _others(rows["event_heads"], column))


def edit_and_seal_again(rows: Rows, dice: Dice) -> None:
    """A forger who knows how the hash is made, and stops at one row."""
    row = dice.choice(rows["events"])
    column = dice.choice(["at", "kind", "actor", "subject"])
    row[column] = _twisted(row[column], dice, _others(rows["events"], column))
    row["hash"] = _event(row).seal()


def rewrite_payload_and_seal_again(rows: Rows, dice: Dice) -> None:
    payload = dice.choice(rows["event_payloads"])
    payload["payload"] = _twisted(payload["payload"], dice, [])
    for row in rows["events"]:
        if _key(row) == _key(payload):
            row["payload_hash"] = canonical.digest_text(payload["payload"])
            row["hash"] = _event(row).seal()


def delete_an_event(rows: Rows, dice: Dice) -> None:
    rows["events"].remove(dice.choice(rows["events"]))


def delete_a_payload(rows: Rows, dice: Dice) -> None:
    rows["event_payloads"].remove(dice.choice(rows["event_payloads"]))


def delete_a_head(rows: Rows, dice: Dice) -> None:
    rows["event_heads"].remove(dice.choice(rows["event_heads"]))


def delete_an_event_with_its_payload(rows: Rows, dice: Dice) -> None:
    _remove(rows, [dice.choice(rows["events"])])


def delete_a_stretch(rows: Rows, dice: Dice) -> None:
    chain = _chain(rows, dice)
    first = dice.randrange(len(chain))
    _remove(rows, chain[first : first + dice.randint(1, len(chain))])


def cut_off_the_tail(rows: Rows, dice: Dice) -> None:
    chain = _chain(rows, dice)
    _remove(rows, chain[dice.randrange(len(chain)) :])


def swap_two_events(rows: Rows, dice: Dice) -> None:
    first, other = dice.sample(rows["events"], 2)
    for column in (*CHAINED, *dice.sample(["tenant_id"], dice.randint(0, 1))):
        first[column], other[column] = other[column], first[column]


def swap_one_column_of_two_events(rows: Rows, dice: Dice) -> None:
    first, other = dice.sample(rows["events"], 2)
    column = dice.choice(CHAINED)
    first[column], other[column] = other[column], first[column]


def swap_two_payloads(rows: Rows, dice: Dice) -> None:
    first, other = dice.sample(rows["event_payloads"], 2)
    first["payload"], other["payload"] = other["payload"], first["payload"]


def swap_two_heads(rows: Rows, dice: Dice) -> None:
    first, other = dice.sample(rows["event_heads"], 2)
    first["tenant_id"], other["tenant_id"] = other["tenant_id"], first["tenant_id"]


def reorder_a_stretch(rows: Rows, dice: Dice) -> None:
    chain = _chain(rows, dice)
    first = dice.randrange(len(chain) - 1)
    stretch = chain[first : first + dice.randint(2, len(chain))]
    seqs = [row["seq"] for row in stretch]
    for row, seq in zip(stretch, dice.sample(seqs, len(seqs)), strict=True):
        row["seq"] = seq


def forge_an_event_at_the_end(rows: Rows, dice: Dice) -> None:
    last = _event(_chain(rows, dice)[-1])
    forged = follow(
        Head(last.seq, last.hash),
        tenant=last.tenant,
        at=last.at,
        kind=last.kind,
        actor="reviewer:forged",
        subject=last.subject,
        payload="{}",
    )
    rows["events"].append(_row(forged))
    rows["event_payloads"].append({"tenant_id": forged.tenant, "seq": forged.seq, "payload": "{}"})


def replace_an_event(rows: Rows, dice: Dice) -> None:
    """Deleted, and another one, well sealed onto the same predecessor, put in its place."""
    victim = dice.choice(rows["events"])
    rows["events"].remove(victim)
    forged = replace(_event(victim), actor="reviewer:forged")
    rows["events"].append(_row(replace(forged, hash=forged.seal())))


Act = Callable[[Rows, Dice], None]
ACTS: list[Act] = [
    edit_an_event,
    edit_a_payload,
    edit_a_head,
    edit_and_seal_again,
    rewrite_payload_and_seal_again,
    delete_an_event,
    delete_a_payload,
    delete_a_head,
    delete_an_event_with_its_payload,
    delete_a_stretch,
    cut_off_the_tail,
    swap_two_events,
    swap_one_column_of_two_events,
    swap_two_payloads,
    swap_two_heads,
    reorder_a_stretch,
    forge_an_event_at_the_end,
    replace_an_event,
]


def rewrite(original: Rows, dice: Dice) -> tuple[str, Rows]:
    """A forger who changes something and then computes every payload's hash, the whole chain and its head again."""
    while True:
        rows = copy.deepcopy(original)
        tenant = dice.choice(rows["event_heads"])["tenant_id"]
        chain = [(_event(row), _payload(rows, row)) for row in rows["events"] if row["tenant_id"] == tenant]
        act = dice.choice(REWRITES)
        act(chain, dice)
        _seal_all(rows, tenant, chain)
        if _known(rows) and rows != original:
            return act.__name__, rows


Chain = list[tuple[Event, str]]


def change_what_happened(chain: Chain, dice: Dice) -> None:
    place = dice.randrange(len(chain))
    event, payload = chain[place]
    name = dice.choice(["at", "kind", "actor", "subject"])
    others = [getattr(one, name) for one, _ in chain]
    chain[place] = (replace(event, **{name: _twisted(getattr(event, name), dice, others)}), payload)


def change_what_it_tells(chain: Chain, dice: Dice) -> None:
    place = dice.randrange(len(chain))
    chain[place] = (chain[place][0], canonical.text({"forged": dice.random()}))


def leave_events_out(chain: Chain, dice: Dice) -> None:
    first = dice.randrange(len(chain))
    del chain[first : first + dice.randint(1, 3)]


def cut_off_the_end(chain: Chain, dice: Dice) -> None:
    del chain[dice.randrange(len(chain)) :]


def put_an_event_in(chain: Chain, dice: Dice) -> None:
    chain.insert(dice.randrange(len(chain)), (replace(chain[0][0], actor="reviewer:forged"), "{}"))


def change_the_order(chain: Chain, dice: Dice) -> None:
    dice.shuffle(chain)


REWRITES: list[Callable[[Chain, Dice], None]] = [
    change_what_happened,
    change_what_it_tells,
    leave_events_out,
    cut_off_the_end,
    put_an_event_in,
    change_the_order,
]


def _payload(rows: Rows, row: Row) -> str:
    return next(
        str(event_payload["payload"]) for event_payload in rows["event_payloads"] if _key(event_payload) == _key(row)
    )


def _seal_all(rows: Rows, tenant: str, chain: Chain) -> None:
    for table in TABLES:
        rows[table.name] = [row for row in rows[table.name] if row["tenant_id"] != tenant]
    head = Head()
    for event, payload in chain:
        sealed = follow(
            head,
            tenant=tenant,
            at=event.at,
            kind=event.kind,
            actor=event.actor,
            subject=event.subject,
            payload=payload,
        )
        head = Head(sealed.seq, sealed.hash)
        rows["events"].append(_row(sealed))
        rows["event_payloads"].append({"tenant_id": tenant, "seq": sealed.seq, "payload": payload})
    if chain:
        rows["event_heads"].append({"tenant_id": tenant, "seq": head.seq, "hash": head.hash})
    for table in TABLES:  # as `load` gives them, so that a change that changes nothing is seen to be none
        rows[table.name].sort(key=lambda row: tuple(row[column.name] for column in table.primary_key))


def _twisted(value: Any, dice: Dice, others: list[Any]) -> Any:
    if others and dice.random() < 0.3:
        return dice.choice(others)
    if isinstance(value, datetime):
        return value + dice.choice([-1, 1]) * timedelta(microseconds=10 ** dice.randint(0, 11))
    if isinstance(value, int):
        return value + dice.choice([-(10**9), -1, 1, 2, 10**9])
    return _twisted_text(value, dice)


def _twisted_text(value: str, dice: Dice) -> str:
    place = dice.randrange(len(value))
    twists = [
        value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :],
        value[:place] + value[place + 1 :],
        value[:place] + dice.choice("aе0 \u200b\u0301") + value[place:],  # a Cyrillic е, and what cannot be seen
        value.swapcase(),
        value + " ",
        "",
    ]
    return dice.choice(twists)


def _known(rows: Rows) -> bool:
    """Whether a database would take these rows: no key twice, no text that Postgres has not."""
    keys = [[tuple(row[column.name] for column in table.primary_key) for row in rows[table.name]] for table in TABLES]
    texts = [value for table in rows.values() for row in table for value in row.values() if isinstance(value, str)]
    return all(len(set(each)) == len(each) for each in keys) and not any("\0" in each for each in texts)


def _chain(rows: Rows, dice: Dice) -> list[Row]:
    tenant = dice.choice(rows["event_heads"])["tenant_id"]
    return [row for row in rows["events"] if row["tenant_id"] == tenant]


def _remove(rows: Rows, gone: list[Row]) -> None:
    keys = [_key(row) for row in gone]
    for table in ("events", "event_payloads"):
        rows[table] = [row for row in rows[table] if _key(row) not in keys]


def _key(row: Row) -> tuple[str, int]:
    return row["tenant_id"], row["seq"]


def _others(rows: list[Row], column: str) -> list[Any]:
    return [row[column] for row in rows]


def _event(row: Row) -> Event:
    fields = {("tenant" if name == "tenant_id" else name): value for name, value in row.items()}
    return Event(**fields)


def _row(event: Event) -> Row:
    return {("tenant_id" if name == "tenant" else name): getattr(event, name) for name in Event.__slots__}
