"""Passkeys over HTTP: registered by a person's own hand, and asked for where a policy says so. With real signatures."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Role, operator
from assent.kernel import events
from assent.settings import Mode
from tests.api.house import LOOPBACK, Builder, House
from tests.api.reviewing import Item, Office, email, open_office, problem, script, seen
from tests.authenticator import PRESENT, Authenticator

SECRET_KEY = "0123456789abcdef0123456789abcdef"
HERE = "http://localhost:2024"
POLICY: dict[str, Any] = {
    "rules": [
        {"name": "mail", "tool": "send_email", "then": "ask", "confirm": "passkey"},
        {"name": "change", "tool": "config_change", "then": "ask", "confirm": "passkey"},
        {"name": "stop", "tool": "breakpoint", "then": "ask", "confirm": "passkey"},
    ]
}
FREE: dict[str, Any] = {"rules": [{**rule, "confirm": None} for rule in POLICY["rules"]]}


@dataclass
class Person:
    """A person in a browser, with a security key at hand."""

    house: House
    name: str
    browser: httpx.AsyncClient
    device: Authenticator

    async def register(self, name: str = "laptop") -> dict[str, Any]:
        options = await self.browser.post("/api/passkeys/registration")
        assert options.status_code == 200, options.text
        made = await self.add(self.device.create(options.json()), name)
        assert made.status_code == 201, made.text
        body: dict[str, Any] = made.json()
        return body

    async def add(self, credential: Any, name: str = "laptop") -> httpx.Response:
        return await self.browser.post("/api/passkeys", json={"name": name, "credential": credential})

    async def options(self, item: Item, **decision: Any) -> dict[str, Any]:
        body = {"revision": item["revision"], "hash": item["hash"], **decision}
        asked = await self.browser.post(f"/api/inbox/items/{item['id']}/confirmation", json=body)
        assert asked.status_code == 200, asked.text
        found: dict[str, Any] = asked.json()
        return found

    async def decide(self, item: Item, assertion: Any, **decision: Any) -> httpx.Response:
        body = {"revision": item["revision"], "hash": item["hash"], "assertion": assertion, **decision}
        return await self.browser.post(f"/api/inbox/items/{item['id']}/decision", json=body)

    async def confirm(self, item: Item, **decision: Any) -> httpx.Response:
        return await self.decide(item, self.device.get(await self.options(item, **decision)), **decision)


async def person(house: House, name: str, role: Role = Role.REVIEWER, url: str = HERE) -> Person:
    await house.services.users.create(operator(), name=name, role=role)
    return Person(house, name, await signed_in(house, name, url), Authenticator(url))


async def signed_in(house: House, name: str, url: str = HERE, credential: str | None = None) -> httpx.AsyncClient:
    browser = house.client(url=url)
    opened = await browser.post("/api/session", json={"credential": credential or await house.link(name)})
    assert opened.status_code == 200, opened.text
    return browser


@pytest.fixture
def build(build_on_both: Builder) -> Builder:
    return build_on_both


@pytest.fixture
async def house(build: Builder) -> House:
    return await build(Mode.SERVE, secret_key=SECRET_KEY)


@pytest.fixture
async def mia(house: House) -> Person:
    return await person(house, "mia")


@pytest.fixture
async def office(build: Builder) -> Office:
    office = await open_office(build)
    await office.policy(POLICY)
    return office


async def kinds(house: House, subject: str) -> list[str]:
    told = await house.services.store.read("default", events.of_subject, subject)
    return [event.kind for event, _ in told]


class TestRegistering:
    async def test_a_passkey_is_added_listed_renamed_and_removed(self, house: House, mia: Person) -> None:
        made = await mia.register("old laptop")
        assert (made["name"], made["party"], made["transports"]) == ("old laptop", "localhost", ["internal"])
        assert (await mia.browser.get("/api/passkeys")).json() == [made]
        path = f"/api/passkeys/{made['id']}"
        assert (await mia.browser.patch(path, json={"name": "phone"})).json()["name"] == "phone"
        assert (await mia.browser.delete(path)).status_code == 204
        assert (await mia.browser.get("/api/passkeys")).json() == []
        problem(await mia.browser.delete(path), 404, "not_found")
        me = (await mia.browser.get("/api/me")).json()
        told = await kinds(house, f"reviewer:{me['id']}")
        assert [kind for kind in told if kind.startswith("passkey.")] == [
            "passkey.added",
            "passkey.renamed",
            "passkey.removed",
        ]
        assert (await house.services.audit.verify(operator())).breaks == []

    async def test_api_key_cannot_register_a_passkey(self, house: House, mia: Person) -> None:
        options = (await mia.browser.post("/api/passkeys/registration")).json()
        credential = mia.device.create(options)
        for key in (await house.key_of("mia"), await house.key(), await house.key(Kind.SERVICE, "admin")):
            client = house.client(key, url=HERE)
            problem(await client.post("/api/passkeys/registration"), 403, "not_allowed")
            body = {"name": "mine", "credential": credential}
            problem(await client.post("/api/passkeys", json=body), 403, "not_allowed")
        assert (await mia.add(credential)).status_code == 201, "the control: in her own browser it is"

    async def test_session_opened_by_a_key_cannot_register_a_passkey(self, house: House, mia: Person) -> None:
        """Opened with a key, by a link that a key made, or by a link that such a session made."""
        await house.person("root", Role.ADMIN)
        key = await house.key_of("root")
        by_key = await signed_in(house, "root", credential=key)
        made = (await house.client(key, url=HERE).post("/api/users/mia/login-link")).json()["token"]
        made_there = (await by_key.post("/api/users/mia/login-link")).json()["token"]
        for browser in (
            by_key,
            await signed_in(house, "mia", credential=made),
            await signed_in(house, "mia", credential=made_there),
        ):
            told = problem(await browser.post("/api/passkeys/registration"), 403, "sign_in_again")
            assert "opened with an API key" in told["detail"]

    async def test_session_by_a_link_of_a_person_can_register_a_passkey(self, house: House, mia: Person) -> None:
        root = await person(house, "root", Role.ADMIN)
        made = (await root.browser.post("/api/users/mia/login-link")).json()["token"]
        mia.browser = await signed_in(house, "mia", credential=made)
        await mia.register()

    async def test_registration_later_than_five_minutes_needs_a_new_sign_in(self, house: House, mia: Person) -> None:
        made = await mia.register()
        options = (await mia.browser.post("/api/passkeys/registration")).json()
        house.pass_time(timedelta(minutes=5, seconds=1))
        problem(await mia.browser.post("/api/passkeys/registration"), 403, "sign_in_again")
        problem(await mia.add(Authenticator(HERE).create(options)), 403, "sign_in_again")
        path = f"/api/passkeys/{made['id']}"
        problem(await mia.browser.delete(path), 403, "sign_in_again")
        assert (await mia.browser.patch(path, json={"name": "still"})).status_code == 200
        mia.browser = await signed_in(house, "mia")
        assert (await mia.browser.delete(path)).status_code == 204

    async def test_registration_challenge_is_bound_to_its_session_and_used_once(
        self, house: House, mia: Person
    ) -> None:
        options = (await mia.browser.post("/api/passkeys/registration")).json()
        assert options["authenticatorSelection"]["userVerification"] == "required"
        credential = mia.device.create(options)
        elsewhere = Person(house, "mia", await signed_in(house, "mia"), mia.device)
        problem(await elsewhere.add(credential), 403, "confirmation_refused")
        assert (await mia.add(credential)).status_code == 201
        problem(await mia.add(credential), 403, "confirmation_refused")

    async def test_device_of_another_person_cannot_be_registered(self, house: House, mia: Person) -> None:
        await mia.register()
        bo = await person(house, "bo")
        bo.device = mia.device
        options = (await bo.browser.post("/api/passkeys/registration")).json()
        problem(await bo.add(bo.device.create(options)), 409, "already_exists")

    @pytest.mark.parametrize(
        "changes", [{"origin": "https://evil.example"}, {"party": "evil.example"}, {"flags": PRESENT}], ids=str
    )
    async def test_invalid_attestation_is_refused(self, mia: Person, changes: dict[str, Any]) -> None:
        options = (await mia.browser.post("/api/passkeys/registration")).json()
        problem(await mia.add(mia.device.create(options, **changes)), 403, "confirmation_refused")
        assert (await mia.browser.get("/api/passkeys")).json() == []

    @pytest.mark.parametrize("url", [LOOPBACK, "http://[::1]:2024"])
    async def test_registration_on_an_ip_address_is_refused(self, house: House, url: str) -> None:
        there = await person(house, "ada", url=url)
        told = problem(await there.browser.post("/api/passkeys/registration"), 403, "confirmation_refused")
        assert "localhost" in told["hint"]

    async def test_public_url_gives_the_domain_of_passkeys(self, build: Builder) -> None:
        house = await build(
            Mode.SERVE, public_url="https://Assent.Example.com:443", allowed_hosts=["assent.example.com"]
        )
        ada = await person(house, "ada", url=LOOPBACK)
        ada.device.origin = "https://assent.example.com"
        assert (await ada.register())["party"] == "assent.example.com"

    async def test_more_than_twenty_passkeys_are_refused(self, mia: Person) -> None:
        for number in range(20):
            mia.device = Authenticator(HERE)
            await mia.register(f"key {number}")
        problem(await mia.browser.post("/api/passkeys/registration"), 409, "conflict")


class TestAdministrators:
    async def test_administrator_removes_passkeys_of_others_and_adds_none(self, house: House, mia: Person) -> None:
        made, root = await mia.register(), await person(house, "root", Role.ADMIN)
        assert [passkey["id"] for passkey in (await root.browser.get("/api/users/mia/passkeys")).json()] == [made["id"]]
        path = f"/api/users/mia/passkeys/{made['id']}"
        for client in (mia.browser, house.client(await house.key(Kind.SERVICE, "admin"), url=HERE)):
            problem(await client.delete(path), 403, "not_allowed")
        problem(await root.browser.delete(f"/api/users/root/passkeys/{made['id']}"), 404, "not_found")
        assert (await root.browser.delete(path)).status_code == 204
        assert (await mia.browser.get("/api/passkeys")).json() == []
        assert (await root.browser.post("/api/users/mia/passkeys", json={})).status_code == 405

    async def test_administrator_needs_a_recent_sign_in_to_remove_their_own_passkey(self, house: House) -> None:
        root = await person(house, "root", Role.ADMIN)
        made = await root.register()
        path = f"/api/users/root/passkeys/{made['id']}"
        problem(await house.client(await house.key_of("root"), url=HERE).delete(path), 403, "not_allowed")
        house.pass_time(timedelta(minutes=6))
        problem(await root.browser.delete(path), 403, "sign_in_again")

    async def test_erased_person_has_no_passkeys(self, house: House, mia: Person) -> None:
        await mia.register()
        await house.services.users.erase(operator(), "mia")
        assert await house.services.passkeys.of_everyone(operator()) == []


class TestDeciding:
    async def test_approval_with_the_passkey_continues_the_run(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        item = await office.asked("per_call", script(email()))
        assert (item["confirm"], item["policy"]["confirm"]) == ("passkey", "passkey")
        seen = await office.get(item["id"], mia.browser)
        assert "confirm" in seen["can"]
        done = await mia.confirm(item, verb="approve")
        assert (done.status_code, done.json()["status"]) == (200, "APPROVED"), done.text
        assert "sent to a@b.c" in str(await office.values(item["source"]["thread_id"]))
        await office.verified()

    async def test_approval_without_the_passkey_is_403_with_the_page_url(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        key = office.house.client(await office.house.key_of("mia"))
        item = await office.asked("per_call", script(email()))
        thread = item["source"]["thread_id"]
        page = f"{HERE}/inbox/{item['id']}"
        refused = [
            await office.decide(item, "approve", key),
            await office.decide(item, "approve", mia.browser),
            await office.answer(thread, "per_call", {"type": "approve"}, key),
        ]
        for response in refused:
            told = problem(response, 403, "confirmation_required")
            assert (told["url"], told["confirm"], told["item"]) == (page, "passkey", item["id"])
        assert refused[2].json()["pending"]
        edited = [{"key": item["actions"][0]["key"], "verb": "edit", "args": {"to": "x@y.z", "body": "b"}}]
        problem(await office.decide(item, client=key, actions=edited), 403, "confirmation_required")
        steered = {"assistant_id": "per_call", "command": {"goto": "tools"}, "multitask_strategy": "interrupt"}
        problem(await key.post(f"/threads/{thread}/runs/wait", json=steered), 403, "confirmation_required")
        update = {"values": {"messages": []}, "as_node": "model"}
        problem(await key.post(f"/threads/{thread}/state", json=update), 403, "confirmation_required")
        assert (await office.get(item["id"]))["status"] == "PENDING"
        assert "item.attempt_refused" in await office.kinds(item["id"])
        assert (await office.decide(item, "reject", key)).status_code == 200

    async def test_control_without_the_rule_the_same_attempts_succeed(self, office: Office) -> None:
        await office.policy(FREE)
        for verb in ("approve", "runs"):
            item = await office.asked("per_call", script(email()))
            thread = item["source"]["thread_id"]
            if verb == "runs":
                done = await office.answer(thread, "per_call", {"type": "approve"}, office.ana)
            else:
                done = await office.decide(item, "approve")
            assert done.status_code == 200, done.text
            assert "sent to a@b.c" in str(await office.values(thread))

    async def test_approval_without_a_registered_passkey_refers_to_registration(self, office: Office) -> None:
        item = await office.request()
        assert "nobody" in problem(await office.decide(item, "approve"), 403, "confirmation_required")["detail"]
        await (await person(office.house, "mia")).register()
        told = problem(await office.decide(item, "approve"), 403, "confirmation_required")
        assert "you have registered none" in told["detail"]
        assert "Account" in told["hint"]
        seen = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
        problem(await office.post(item, "confirmation", **seen), 403, "confirmation_refused")

    async def test_replayed_or_altered_signature_is_refused(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        item, other = await office.request(), await office.request(title="Another")
        signed = mia.device.get(await mia.options(item, verb="approve"))
        problem(await mia.decide(other, signed, verb="approve"), 403, "confirmation_refused")
        problem(await mia.decide(item, signed, verb="approve", notes="and more"), 403, "confirmation_refused")
        done = await mia.decide(item, signed, verb="approve", grace_seconds=60)
        assert done.status_code == 200, done.text
        undone = await mia.browser.delete(f"/api/inbox/items/{item['id']}/decision")
        assert undone.json()["status"] == "PENDING"
        told = problem(await mia.decide(item, signed, verb="approve"), 403, "confirmation_refused")
        assert "used before" in told["detail"]
        assert (await mia.confirm(item, verb="approve")).status_code == 200
        refusals = [kind for kind in await office.kinds(item["id"]) if kind == "item.attempt_refused"]
        assert refusals, "the timeline keeps the attempt"

    async def test_the_same_idempotency_key_gives_the_same_answer_and_decides_nothing_twice(
        self, office: Office
    ) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        item = await office.request()
        signed = mia.device.get(await mia.options(item, verb="approve"))
        body = {"revision": item["revision"], "hash": item["hash"], "verb": "approve", "assertion": signed}
        path, key = f"/api/inbox/items/{item['id']}/decision", {"Idempotency-Key": "k"}
        first, again = [await mia.browser.post(path, json=body, headers=key) for _ in range(2)]
        assert (first.status_code, again.json()) == (200, first.json())
        assert (await office.kinds(item["id"])).count("item.approved") == 1

    async def test_an_edit_after_which_the_agent_asks_anew_needs_another_signature(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        item = await office.request()
        signed = mia.device.get(await mia.options(item, verb="approve"))
        await office.ask_revision(item)
        changed = {"title": "Raise it higher", "payload": {"limit": 50}}
        await office.agent.post(f"/api/inbox/items/{item['id']}/resubmission", json=changed)
        now = await office.get(item["id"])
        assert now["revision"] == 2
        problem(await mia.decide(item, signed, verb="approve"), 409, "stale_revision")
        problem(await mia.decide(now, signed, verb="approve"), 403, "confirmation_refused")

    async def test_item_that_needs_a_passkey_is_never_approved_in_bulk(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        item = await office.request()
        named = [{"id": item["id"], "revision": item["revision"], "hash": item["hash"]}]
        for dry_run in (True, False):
            body = {"items": named, "verb": "approve", "dry_run": dry_run}
            [result] = (await mia.browser.post("/api/inbox/bulk", json=body)).json()["results"]
            assert (result["ok"], result["error"]["code"]) == (False, "confirmation_required")
        body = {"items": named, "verb": "reject", "message": "no"}
        [result] = (await mia.browser.post("/api/inbox/bulk", json=body)).json()["results"]
        assert result["ok"]

    async def test_item_without_a_passkey_rule_gives_no_challenge(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        item = await office.request()
        seen = {"revision": item["revision"], "hash": item["hash"]}
        path = f"/api/inbox/items/{item['id']}/confirmation"
        assert (await mia.browser.post(path, json={**seen, "verb": "reject"})).json() is None
        problem(await mia.browser.post(path, json={**seen, "hash": "0" * 64, "verb": "approve"}), 409, "stale_revision")
        problem(await office.agent.post(path, json={**seen, "verb": "approve"}), 403, "not_allowed")

    async def test_breakpoint_that_needs_a_passkey_is_not_passed_without_it(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        thread = await office.run("breakpoint", {})
        [item] = await office.items(f"is:pending thread:{thread}")
        assert item["confirm"] == "passkey", item["title"]
        go_on = {"assistant_id": "breakpoint", "input": None}
        for client in (office.ana, office.house.client(await office.house.key_of("mia"))):
            refused = await client.post(f"/threads/{thread}/runs/wait", json=go_on)
            problem(refused, 403, "confirmation_required")
        done = await mia.confirm(item, verb="approve")
        assert done.status_code == 200, done.text
        assert (await office.rests(thread, status="idle"))["status"] == "idle"

    async def test_running_a_call_again_needs_the_passkey(self, office: Office) -> None:
        mia = await person(office.house, "mia")
        await mia.register()
        item = await office.asked("per_call", script(email()))
        assert (await mia.confirm(item, verb="approve", grace_seconds=60)).status_code == 200
        doubted = "UPDATE items SET execution = 'in_doubt', doubt_id = interrupt_id"  # which the thread waits for
        await office.house.services.store.write(None, lambda tx: tx.sql(doubted))
        path = f"/api/inbox/items/{item['id']}/in-doubt"
        problem(await mia.browser.post(path, json={"outcome": "run_again"}), 403, "confirmation_required")
        assert (await mia.browser.post(f"{path}/confirmation", json={"outcome": "done"})).json() is None
        options = (await mia.browser.post(f"{path}/confirmation", json={"outcome": "run_again"})).json()
        body = {"outcome": "run_again", "assertion": mia.device.get(options)}
        assert (await mia.browser.post(path, json=body)).json()["execution"] == "granted"
        problem(await mia.browser.post(path, json=body), 409, "conflict")

    async def test_item_that_needs_a_passkey_gets_no_standing_approval(self, office: Office) -> None:
        root = office.house.client(await office.house.person("root", Role.ADMIN))
        body = {**seen(await office.asked("per_call", script(email()))), "lifetime_seconds": 60}
        problem(await root.post("/api/standing-approvals", json=body), 409, "conflict")
        await office.policy(FREE)
        body |= seen(await office.asked("per_call", script(email())))
        assert (await root.post("/api/standing-approvals", json=body)).status_code == 201


class TestWarning:
    async def test_policy_warns_where_no_decider_has_a_passkey(self, office: Office) -> None:
        told = (await office.ana.get("/api/policies")).json()["warnings"]
        assert len(told) == 3
        assert "nobody who may decide has registered one" in told[0]
        await (await person(office.house, "val", Role.VIEWER)).register()
        assert len((await office.ana.get("/api/policies")).json()["warnings"]) == 3, "a viewer decides nothing"
        mia = await person(office.house, "mia")
        await mia.register()
        assert (await office.ana.get("/api/policies")).json()["warnings"] == []
        two = {"rules": [{"name": "two", "tool": "*", "then": "ask", "confirm": "passkey", "approvals": 2}]}
        await office.policy(two)
        [told] = (await office.ana.get("/api/policies")).json()["warnings"]
        assert "only 1 of the 2 people it needs" in told
        await office.house.services.users.change(operator(), "mia", disabled=True)
        [told] = (await office.ana.get("/api/policies")).json()["warnings"]
        assert "nobody" in told
