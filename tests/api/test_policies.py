"""Policies over REST: put in force, kept by version, tried on the past; and approvals that stand for more than one."""

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Role
from tests.api.house import Builder
from tests.api.reviewing import Office, email, open_office, problem, script, seen, staff

TOML = """
default = "ask"

[[rules]]
name = "money"
tool = "pay"
then = "ask"
risk = "high"
approvals = 2
"""


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build)


@pytest.fixture
async def admin(office: Office) -> httpx.AsyncClient:
    return await office.house.admin()


async def test_without_a_policy_every_call_needs_approval(office: Office) -> None:
    body = (await office.ana.get("/api/policies")).json()
    assert body["policy"]["default"]["then"] == "ask"
    assert body["policy"]["rules"] == []


async def test_a_policy_is_put_in_force_and_kept(office: Office, admin: httpx.AsyncClient) -> None:
    before = (await admin.get("/api/policies")).json()
    put = await admin.put("/api/policies", json={"policy": TOML})
    assert put.status_code == 200, put.text
    now = put.json()
    assert (now["version"], now["source"]) == (before["version"] + 1, "api")
    assert now["actor"].startswith("reviewer:")
    assert now["policy"]["rules"][0]["approvals"] == 2
    assert (await office.ana.get("/api/policies")).json() == now
    again = (await admin.put("/api/policies", json={"policy": now["policy"]})).json()
    assert again == now, "what is written is what was read, and the same again is no new version"
    again = (await admin.put("/api/policies", json={"policy": {**now["policy"], "rules": []}})).json()
    versions = (await admin.get("/api/policies/versions", params={"limit": 1})).json()
    assert versions["items"][0]["version"] == again["version"]
    rest = (await admin.get("/api/policies/versions", params={"cursor": versions["next"]})).json()
    assert now["version"] in [item["version"] for item in rest["items"]]
    told = (await admin.get("/api/audit/events", params={"kind": "policy.changed"})).json()["items"]
    assert len(told) >= 2
    await office.verified()


async def test_invalid_policy_is_refused_with_rule_and_field(admin: httpx.AsyncClient) -> None:
    rules: list[dict[str, Any]] = [
        {"name": "a", "then": "perhaps"},
        {"name": "b", "then": "ask", "approvals": 0},
        {"name": "c", "then": "ask", "when": "args.("},
        {"name": "d", "then": "ask", "colour": "red"},
        {"then": "ask"},
    ]
    refused = problem(await admin.put("/api/policies", json={"policy": {"rules": rules}}), 422, "invalid_policy")
    paths = [error["path"] for error in refused["errors"]]
    for index in range(5):
        assert any(path.startswith(f"rules[{index}]") for path in paths), (index, paths)
    others: list[Any] = ["default = ", 7, None, [], {"default": "perhaps"}]
    for wrong in others:
        problem(await admin.put("/api/policies", json={"policy": wrong}), 422, "invalid_policy")


@pytest.mark.promise("P6")
async def test_policy_is_written_only_with_its_scope(office: Office) -> None:
    for client in (office.agent, office.ana):
        refused = problem(await client.put("/api/policies", json={"policy": {"default": "allow"}}), 403, "not_allowed")
        assert refused["missing"] == ["policy:write"]


@pytest.mark.promise("P6")
async def test_program_cannot_loosen_the_policy(office: Office, admin: httpx.AsyncClient) -> None:
    """A program with any scopes: one that may loosen the policy needs no approval. The operator may."""
    service = office.house.client(await office.house.key(Kind.SERVICE, "policy:write", "items:read", "admin"))
    before = (await admin.get("/api/policies")).json()
    for policy in ({"default": "allow"}, {}, TOML):
        refused = problem(await service.put("/api/policies", json={"policy": policy}), 403, "not_allowed")
        assert refused["missing"] == ["reviewer"]
    assert (await admin.get("/api/policies")).json() == before
    await office.policy({"default": "advise"})
    assert (await admin.put("/api/policies", json={"policy": TOML})).status_code == 200


async def test_program_may_revoke_a_standing_approval(office: Office, admin: httpx.AsyncClient) -> None:
    item = await office.asked("batched", script(email("hi")))
    made = await admin.post("/api/standing-approvals", json={**seen(item), "lifetime_seconds": 60})
    service = office.house.client(await office.house.key(Kind.SERVICE, "policy:write", "items:read"))
    gone = await service.delete(f"/api/standing-approvals/{made.json()[0]['id']}")
    assert gone.json()["revoked_at"] is not None


async def test_item_keeps_the_policy_version_of_its_creation(office: Office, admin: httpx.AsyncClient) -> None:
    item = await office.asked("hitl", {"text": "x"})
    two = {"default": {"name": "two", "then": "ask", "approvals": 2}}
    assert (await admin.put("/api/policies", json={"policy": two})).status_code == 200
    assert (await office.decided(item, "approve"))["status"] == "APPROVED"
    assert (await office.asked("hitl", {"text": "y"}))["approvals"]["needed"] == 2


async def test_item_shows_deciders_risk_and_verbs_of_its_rule(office: Office) -> None:
    rules = [
        {"name": "never", "then": "never", "tool": "send_email", "when": 'args.body == "spam"'},
        {"name": "mail", "then": "ask", "tool": "send_*", "risk": "high", "verbs": ["approve", "reject"]},
    ]
    await office.policy({"rules": rules, "default": "advise"})
    mail = await office.asked("batched", script(email("hi")))
    assert (mail["gated"], mail["risk"], mail["actions"][0]["risk"]) == (True, "high", "high")
    assert mail["actions"][0]["allowed"] == ["approve", "reject"]
    assert [rule["name"] for rule in mail["policy"]["rules"]] == ["mail"]
    spam = await office.asked("batched", script(email("spam")))
    assert spam["actions"][0]["allowed"] == ["reject", "respond"], "which both run nothing"
    problem(await office.decide(spam, "approve"), 422, "invalid_decision")
    assert [item["id"] for item in await office.items("risk:high")] == [mail["id"]]


REFUND = ("refund_payment", {"amount": 249.9, "currency": "EUR", "order": "4711"})
WIPE = ("run_shell", {"command": "sudo rm -rf /srv/data"})


def calls(*named: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "args": args, "allowed": ["approve", "edit", "reject"]} for name, args in named]


async def test_risk_reasons_and_cautions_are_those_of_each_action(office: Office) -> None:
    rules = [{"name": "refunds", "then": "ask", "tool": "refund_*", "risk": "critical"}]
    await office.policy({"rules": rules, "default": "ask"})
    item = await office.request(actions=calls(email(), REFUND, WIPE))
    mail, refund, wipe = item["actions"]
    assert (mail["risk"], mail["risk_reasons"], mail["cautions"]) == (None, [], [])
    assert (refund["risk"], refund["risk_reasons"]) == ("critical", [{"risk": "critical", "rule": "refunds"}])
    assert refund["cautions"] == []
    assert wipe["risk"] == "high"
    assert {caution["text"] for caution in wipe["cautions"]} == {
        "Deletes whole folders without confirmation (rm -rf).",
        "Runs as administrator (sudo).",
    }
    assert {caution["detail"] for caution in wipe["cautions"]} == {"sudo rm -rf /srv/data"}
    assert item["risk"] == "critical", "the highest of its actions"
    [listed] = await office.items(arguments=True)
    assert listed["risk_reasons"] == item["risk_reasons"]
    assert listed["risk_reasons"][0] == {
        "action": refund["key"],
        "name": "refund_payment",
        "risk": "critical",
        "rule": "refunds",
    }
    assert {reason["name"] for reason in listed["risk_reasons"]} == {"refund_payment", "run_shell"}
    assert [action["risk"] for action in listed["actions"]] == [None, "critical", "high"]


async def test_an_edit_changes_the_cautions_and_keeps_the_risk_of_the_rules(office: Office) -> None:
    rules = [{"name": "shells", "then": "ask", "tool": "run_shell", "risk": "medium", "approvals": 2}]
    await office.policy({"rules": rules, "default": "ask"})
    item = await office.request(actions=calls(WIPE))
    assert item["risk"] == "high"
    edit = {"key": item["actions"][0]["key"], "verb": "edit", "args": {"command": "ls /srv/data"}}
    edited = await office.decided(item, actions=[edit])
    assert (edited["risk"], edited["actions"][0]["cautions"]) == ("medium", [])
    assert [reason["rule"] for reason in edited["risk_reasons"]] == ["shells"]


async def test_a_caution_quotes_no_secret(office: Office) -> None:
    await office.policy({"default": {"name": "default", "then": "ask", "mask": ["command"]}})
    item = await office.request(actions=calls(WIPE))
    assert item["risk"] == "high", "the rating sees the whole call"
    assert "/srv/data" not in str(item)


@pytest.mark.promise("P10")
async def test_secrets_are_masked_everywhere(office: Office) -> None:
    await office.policy({"default": {"name": "default", "then": "ask", "mask": ["card.number", "body"]}})
    args = {"card": {"number": "SECRET-1", "name": "A"}}
    asked = {"kind": "confirmation", "tool_calls": [{"call_id": "c", "tool_name": "pay", "arguments": args}]}
    paid = await office.asked("asking", {"questions": [asked]})
    assert paid["actions"][0]["args"] == {"card": {"number": "••••••", "name": "A"}}
    sent = await office.asked("batched", script(email("SECRET-2")))
    assert "Args" in sent["actions"][0]["description"], "agents repeat arguments in their own words"
    edited = {"card": {"number": "SECRET-3", "name": "A"}}
    said: dict[str, Any] = {
        paid["id"]: {"actions": [{"key": "0", "verb": "edit", "args": edited}]},
        sent["id"]: {"verb": "approve"},
    }
    for item in (paid, sent):
        decided = await office.decide(item, **said[item["id"]])
        assert decided.status_code == 200
        lost = await office.decide(item, "reject", office.ben, message="no")
        assert "SECRET" not in decided.text, decided.text
        assert "SECRET" not in lost.text, lost.text
        path = f"/api/inbox/items/{item['id']}"
        for url in (path, f"{path}/revisions", f"{path}/timeline", "/api/inbox/items", "/api/deliveries"):
            assert "SECRET" not in (await office.ana.get(url)).text, url
    [told] = (await office.values(paid["source"]["thread_id"]))["answers"]
    assert told == {"approvals": [{"call_id": "c", "approved": True, "arguments": edited}]}, (
        "the agent gets what is meant"
    )


@pytest.mark.promise("P10")
async def test_dry_run_of_a_policy_does_not_reveal_masked_values(office: Office, admin: httpx.AsyncClient) -> None:
    """A condition sees the secrets, and whether it holds shows: letter by letter they could be read."""
    await office.policy({"default": {"name": "default", "then": "ask", "mask": ["body"]}})
    await office.asked("batched", script(email("hunter2")))
    guess = {"policy": {"rules": [{"name": "h", "then": "allow", "when": "args.body.startsWith('h')"}]}}
    service = office.house.client(await office.house.key(Kind.SERVICE, "policy:write", "items:read", "admin"))
    for client, missing in ((office.agent, "policy:write"), (office.ana, "policy:write"), (service, "reviewer")):
        refused = problem(await client.post("/api/policies/test", json=guess), 403, "not_allowed")
        assert refused["missing"] == [missing]
    assert (await admin.post("/api/policies/test", json=guess)).json()["looked_at"] == 1


async def test_dry_run_replays_a_policy_on_past_items(office: Office, admin: httpx.AsyncClient) -> None:
    item = await office.asked("batched", script(email("hi")))
    await office.request(actions=[{"name": "other", "args": {}}])
    policy = {"rules": [{"name": "free", "then": "allow", "tool": "send_email"}]}
    tried = (await admin.post("/api/policies/test", json={"policy": policy})).json()
    assert tried["looked_at"] == 2
    assert tried["differences"] == [
        {
            "item_id": item["id"],
            "tool": "send_email",
            "before": "ask",
            "after": "allow",
            "rule": "free",
            "problems": [],
            "loosens": True,
        }
    ]
    assert tried["loosens"] == ["free: is new and comes before stricter rules"]
    assert (await office.ana.get("/api/policies")).json()["policy"]["rules"] == [], "it was only tried"
    problem(await admin.post("/api/policies/test", json={"policy": {"rules": 1}}), 422, "invalid_policy")


# Standing approvals


async def test_standing_approval_is_given_listed_and_revoked(office: Office, admin: httpx.AsyncClient) -> None:
    item = await office.asked("batched", script(email("hi")))
    body = {**seen(item), "lifetime_seconds": 3600, "uses": 3}
    made = await admin.post("/api/standing-approvals", json=body)
    assert made.status_code == 201, made.text
    [given] = made.json()
    assert (given["tool"], given["graph"], given["uses_left"], given["same_args"]) == ("send_email", "batched", 3, True)
    assert [item["id"] for item in (await office.ana.get("/api/standing-approvals")).json()["items"]] == [given["id"]]
    assert (await office.ana.get(f"/api/standing-approvals/{given['id']}")).json() == given
    for _ in range(2):
        gone = await admin.delete(f"/api/standing-approvals/{given['id']}")
        assert gone.json()["revoked_at"] is not None
        assert (await office.ana.get(f"/api/standing-approvals/{given['id']}")).json() == gone.json()
    assert (await office.kinds(item["id"]))[1:] == ["approval.given", "approval.revoked"]
    for sent in (admin.get, admin.delete):
        problem(await sent("/api/standing-approvals/none"), 404, "not_found")


async def test_standing_approval_is_tried_on_past_calls_before_it_is_given(
    office: Office, admin: httpx.AsyncClient
) -> None:
    rejected = await office.asked("batched", script(email("hi")))
    await office.decided(rejected, "reject")
    item = await office.asked("batched", script(email("hello")))
    limits = [{"argument": "to"}]
    body = {**seen(item), "lifetime_seconds": 3600, "same_args": False, "limits": limits, "same_agent": True}
    tried = (await admin.post("/api/standing-approvals/proposal", json={**body, "days": 7})).json()
    [scope] = tried["approvals"]
    assert (scope["tool"], scope["condition"]) == ("send_email", 'args.to == "a@b.c"')
    assert f"agent:{scope['agent']}" == item["requester"]
    assert '+ when = "args.to' in tried["diff"]
    assert (tried["looked_at"], tried["would_have_run"]) == (2, 2)
    assert tried["outcomes"] == {"pending": 1, "rejected": 1}
    assert {match["item_id"]: match["status"] for match in tried["matches"]}[rejected["id"]] == "REJECTED"
    assert (await admin.get("/api/standing-approvals")).json()["items"] == [], "it was only tried"
    [given] = (await admin.post("/api/standing-approvals", json=body)).json()
    assert {name: given[name] for name in scope} == scope | {"expires_at": given["expires_at"]}
    events = (await admin.get("/api/audit/events", params={"kind": "approval.given"})).json()["items"]
    told = json.loads(events[0]["payload"])
    assert (told["condition"], told["agent"]) == (scope["condition"], scope["agent"])

    await office.policy({"rules": [{"name": "no", "then": "never", "when": 'args.body == "hi"'}]})
    stopped = (await admin.post("/api/standing-approvals/proposal", json=body)).json()
    assert (stopped["would_have_run"], stopped["outcomes"]) == (1, {"pending": 1})
    assert {match["stopped_by"] for match in stopped["matches"]} == {None, "no"}
    await office.verified()


@pytest.mark.parametrize(
    "wrong",
    [
        {"limits": [{"argument": "to"}]},
        {"same_args": False, "limits": [{"argument": "none"}]},
        {"same_args": False, "limits": [{"argument": "to", "bound": "at_most"}]},
        {"same_args": False, "limits": [{"argument": "body"}]},
        {"action": "none"},
        {"days": 0},
    ],
)
async def test_standing_approval_with_a_wrong_scope_is_refused(
    office: Office, admin: httpx.AsyncClient, wrong: dict[str, Any]
) -> None:
    """`body` is a secret here: a condition with its value would show it to everyone."""
    await office.policy({"default": {"name": "default", "then": "ask", "mask": ["body"]}})
    item = await office.asked("batched", script(email("hunter2")))
    body = {**seen(item), "lifetime_seconds": 60, **wrong}
    refused = problem(await admin.post("/api/standing-approvals/proposal", json=body), 422, "invalid_request")
    assert "hunter2" not in str(refused)
    if "days" not in wrong:
        problem(await admin.post("/api/standing-approvals", json=body), 422, "invalid_request")


@pytest.mark.promise("P3")
async def test_repeated_idempotency_key_gives_one_standing_approval(office: Office, admin: httpx.AsyncClient) -> None:
    item = await office.asked("batched", script(email("hi")))
    body = {**seen(item), "lifetime_seconds": 3600}

    async def give(key: str, **other: Any) -> httpx.Response:
        return await admin.post("/api/standing-approvals", json={**body, **other}, headers={"Idempotency-Key": key})

    first, again = await give("k"), await give("k")
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    problem(await give("k", uses=2), 422, "key_reused")
    assert len((await admin.get("/api/standing-approvals")).json()["items"]) == 1
    assert (await give("another")).json() != first.json()
    assert len((await admin.get("/api/standing-approvals")).json()["items"]) == 2


@pytest.mark.promise("P6")
async def test_standing_approval_is_given_only_by_people_who_write_policies(
    office: Office, admin: httpx.AsyncClient
) -> None:
    item = await office.asked("batched", script(email("hi")))
    body = {**seen(item), "lifetime_seconds": 60}
    service = office.house.client(await office.house.key(Kind.SERVICE, "policy:write", "items:read"))
    viewer = office.house.client(await office.house.person("vera", Role.VIEWER))
    for client in (office.agent, office.ana, service, viewer):
        problem(await client.post("/api/standing-approvals", json=body), 403, "not_allowed")
        problem(await client.post("/api/standing-approvals/proposal", json=body), 403, "not_allowed")
    for wrong in (
        {"lifetime_seconds": 0},
        {"lifetime_seconds": timedelta(days=91).total_seconds()},
        {"uses": 0},
        {"condition": "args.("},
    ):
        problem(await admin.post("/api/standing-approvals", json={**body, **wrong}), 422, "invalid_request")
    held = await office.request()
    problem(await admin.post("/api/standing-approvals", json={**body, **seen(held)}), 422, "invalid_request")
    problem(await admin.post("/api/standing-approvals", json={**body, "item_id": "none"}), 404, "not_found")


@pytest.mark.promise("P10")
async def test_policies_of_another_tenant_are_not_shown(office: Office, admin: httpx.AsyncClient) -> None:
    acme = await staff(office.house, tenant="acme")
    boss = await office.house.admin(tenant="acme")
    await boss.put("/api/policies", json={"policy": {"default": "allow"}})
    assert (await office.ana.get("/api/policies")).json()["policy"]["default"]["then"] == "ask"
    item = await office.asked("batched", script(email("hi")))
    body = {**seen(item), "lifetime_seconds": 60}
    problem(await boss.post("/api/standing-approvals", json=body), 404, "not_found")
    [given] = (await admin.post("/api/standing-approvals", json=body)).json()
    for sent in (boss.get, boss.delete):
        problem(await sent(f"/api/standing-approvals/{given['id']}"), 404, "not_found")
    assert (await acme.ana.get("/api/standing-approvals")).json()["items"] == []
    assert (await boss.post("/api/policies/test", json={"policy": {}})).json()["looked_at"] == 0
