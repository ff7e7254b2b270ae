"""One layer keeps tenants apart: a statement that forgets the tenant is refused, other tenants' rows are not there."""

import pytest
from sqlalchemy import bindparam, delete, exists, select, update

from assent.identity.rows import users
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import TenantForgotten, Tx
from tests.contract.stores import AnyStore
from tests.contract.tables import add, compare_and_set, counters, notes, pointers, values

ACME, OTHER = "acme", "other"
FORGETFUL = [
    select(counters),
    select(counters.c.value).where(counters.c.name == "x"),
    update(counters).values(value=9),
    delete(counters),
    select(counters).where(counters.c.tenant_id == "other"),
    select(counters).where(counters.c.tenant_id == bindparam("whose", "other")),
    select(counters).join(pointers, pointers.c.target == counters.c.name).where(pointers.c.tenant_id == TENANT),
    select(counters).where(counters.c.tenant_id == TENANT, exists().where(pointers.c.target == counters.c.name)),
    select(counters).where(counters.c.name == TENANT),
    select(counters.alias()).where(counters.c.tenant_id == TENANT),
    update(counters).values(value=select(notes.c.note_id).scalar_subquery()).where(counters.c.tenant_id == TENANT),
]
ALIAS = counters.alias()
HELD = [
    select(counters).where(counters.c.tenant_id == TENANT),
    select(ALIAS.c.name).where(ALIAS.c.tenant_id == TENANT),
    select(counters.c.name)
    .join(pointers, (pointers.c.tenant_id == counters.c.tenant_id) & (pointers.c.target == counters.c.name))
    .where(counters.c.tenant_id == TENANT),
    select(counters.c.name).where(
        counters.c.tenant_id == TENANT, exists().where(notes.c.tenant_id == counters.c.tenant_id)
    ),
    select(counters.c.name).where(
        counters.c.tenant_id == TENANT,
        counters.c.name.in_(select(pointers.c.target).where(pointers.c.tenant_id == TENANT)),
    ),
]
EVERYTHING = select(counters.c.tenant_id, counters.c.value).order_by(counters.c.tenant_id)

pytestmark = pytest.mark.promise("P10")


@pytest.mark.parametrize("statement", FORGETFUL, ids=str)
async def test_statement_without_a_tenant_condition_is_refused(store: AnyStore, statement: object) -> None:
    await store.write(OTHER, add, "x", value=1)
    for go in (store.read, store.write):
        with pytest.raises(TenantForgotten):
            await go(ACME, lambda tx: tx.all(statement))  # type: ignore[arg-type]
    with pytest.raises(TenantForgotten):
        await store.write(ACME, lambda tx: tx.change(statement))  # type: ignore[arg-type]
    assert await store.read(OTHER, values) == {"x": 1}


@pytest.mark.parametrize("statement", HELD, ids=str)
async def test_control_statement_with_tenant_conditions_is_accepted(store: AnyStore, statement: object) -> None:
    """The control of the one above."""
    await store.read(ACME, lambda tx: tx.all(statement))  # type: ignore[arg-type]


async def test_rows_of_another_tenant_are_not_found(store: AnyStore) -> None:
    await store.write(ACME, add, "x", value=1)
    assert await store.read(OTHER, values) == {}
    assert await store.write(OTHER, compare_and_set, "x", 1, 2) is False
    await store.write(OTHER, add, "x", value=3)
    assert await store.read(ACME, values) == {"x": 1}


async def test_inserted_row_gets_the_tenant_of_the_transaction(store: AnyStore) -> None:
    await store.write(ACME, lambda tx: tx.insert(counters, tenant_id=OTHER, name="x", value=1))
    await store.write(ACME, lambda tx: tx.insert_new(counters, tenant_id=OTHER, name="y", value=2))
    await store.write(ACME, lambda tx: tx.insert_all(counters, [{"tenant_id": OTHER, "name": "z", "value": 3}]))
    assert await store.read(OTHER, values) == {}
    assert await store.read(ACME, values) == {"x": 1, "y": 2, "z": 3}


async def test_parameter_cannot_change_the_tenant(store: AnyStore) -> None:
    await store.write(OTHER, add, "x", value=1)
    statement = select(counters).where(counters.c.tenant_id == TENANT)
    assert await store.read(ACME, lambda tx: tx.all(statement, tenant=OTHER)) == []


async def test_control_transaction_across_tenants_sees_all_rows(store: AnyStore) -> None:
    """The control of isolation: the rows of both are there, and only this way of opening shows them together."""
    await store.write(ACME, add, "x", value=1)
    await store.write(OTHER, add, "x", value=2)
    rows = await store.read(None, lambda tx: tx.all(EVERYTHING))
    assert [tuple(row) for row in rows] == [(ACME, 1), (OTHER, 2)]
    with pytest.raises(TenantForgotten):
        await store.read(None, lambda tx: tx.tenant)


async def test_tenant_statement_in_a_transaction_across_tenants_is_refused(store: AnyStore) -> None:
    """Fails closed: without a tenant, a statement that wants one does not run at all."""

    def look(tx: Tx) -> object:
        return users.by_name(tx, "anyone")

    with pytest.raises(Exception, match="tenant"):
        await store.read(None, look)
