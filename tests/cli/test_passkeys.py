"""`assent passkeys` on the database itself, and commands where a policy asks for a passkey."""

import asyncio
from pathlib import Path

import pytest

from assent.app import open_services
from assent.identity.model.passkeys import Passkey
from assent.identity.rows import passkeys, users
from assent.kernel.store.transaction import Tx
from assent.settings import Settings
from tests.cli.conftest import Assent
from tests.cli.house import House
from tests.servers import dev_server, running

POLICY = '[[rules]]\nname = "all"\ntool = "*"\nthen = "ask"{}'
HERE = ("--database", "sqlite:///.assent/assent.db")


def registered(name: str, passkey_id: str) -> None:
    def write(tx: Tx) -> None:
        user = users.by_name(tx, name)
        assert user is not None
        passkeys.insert(tx, Passkey(passkey_id, user.id, "c", b"k", 0, "localhost", "phone", (), tx.now(), None))

    async def main() -> None:
        async with open_services(Settings(database="sqlite:///.assent/assent.db")) as services:
            await services.store.write("default", write)

    asyncio.run(main())


def test_passkey_is_listed_and_removed(assent: Assent) -> None:
    assert "No passkeys yet" in assent("passkeys", "list").out
    assent("users", "create", "ana")
    assent("users", "create", "ben")
    registered("ana", "p1")
    (listed,) = assent("passkeys", "list", "--json").json
    assert (listed["person"], listed["name"], listed["works_at"], listed["id"]) == ("ana", "phone", "localhost", "p1")
    assert "phone" in assent("passkeys", "list").out
    assert assent("passkeys", "remove", "ben", "p1").code == 5
    assert assent("passkeys", "remove", "ana", "p1").out == "removed the passkey p1 of ana\n"
    assert assent("passkeys", "list", "--json").json == []
    assert "passkey.removed" in assent("audit", "list").out


@pytest.mark.parametrize("confirm", [True, False])
def test_approval_that_needs_a_passkey_refers_to_the_page(assent: Assent, tmp_path: Path, confirm: bool) -> None:
    """The control: without the word in the rule it approves."""
    (tmp_path / "policy.toml").write_text(POLICY.format('\nconfirm = "passkey"' if confirm else ""))
    database = f"sqlite:///{tmp_path}/server.db"
    with running(dev_server(database, ASSENT_POLICY=str(tmp_path / "policy.toml"))) as server:
        house = House(server, assent)
        item_id = house.request()
        done = house.inbox("approve", item_id)
        if not confirm:
            assert done.code == 0
            return
        port = server.url.rpartition(":")[2]
        assert done.code == 4
        assert f"http://localhost:{port}/inbox/{item_id}" in done.err
        assert "passkey" in done.err
        assert house.inbox("reject", item_id, "--message", "no").code == 0


def test_approval_that_needs_a_passkey_is_refused_on_the_database(assent: Assent, folder: Path) -> None:
    (folder / "policy.toml").write_text(POLICY.format('\nconfirm = "passkey"'))
    assert assent("policy", "set", "policy.toml", *HERE).code == 0
    assent("users", "create", "ana")
    registered("ana", "p1")
    item_id = _asked(folder)
    refused = assent("inbox", "approve", item_id, *HERE, "--as", "ana")
    assert refused.code == 4, refused
    assert f"/inbox/{item_id}" in refused.err


def _asked(folder: Path) -> str:
    """An item of an agent, made beside the command."""
    from assent.identity.model.access import DEFAULT_SCOPES, Kind, Principal
    from assent.review.requests import Request, create

    agent = Principal(Kind.AGENT, "bot", "bot", "default", DEFAULT_SCOPES[Kind.AGENT])

    async def main() -> str:
        async with open_services(Settings(database=f"sqlite:///{folder}/.assent/assent.db")) as services:
            item, _ = await services.store.write("default", create, agent, Request("config_change", "Raise it"))
            return item.id

    return asyncio.run(main())
