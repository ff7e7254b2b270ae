"""GraphQL: the same use cases, errors and idempotency keys as REST; limits before execution; persisted queries."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import get_introspection_query

from assent import extras
from assent.identity.model.access import Role
from assent.review.model.routing import ADVICE, Reason
from assent.settings import Mode
from assent.surfaces.graphql import documents, limits
from assent.surfaces.graphql.schema import schema
from tests.api.house import Builder
from tests.api.reviewing import Item, Office, open_office
from tests.scoreboard import Count, RecordScore

SCHEMA = Path(__file__).parents[2] / "docs" / "schema.graphql"
SEEN = "$id: ID!, $revision: Int!, $hash: String!"
GIVEN = "id: $id, revision: $revision, hash: $hash"
APPROVE = f"mutation({SEEN}) {{ approveInboxItem({GIVEN}) {{ id status decisions {{ via }} }} }}"


@pytest.fixture(scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> AsyncIterator[Office]:
    folder = tmp_path_factory.mktemp("graphql")
    async with AsyncExitStack() as stack:
        yield await open_office(Builder(folder, migrated_file, stack))


async def post(client: httpx.AsyncClient, query: str, *, key: str | None = None, **variables: Any) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return await client.post("/graphql", json={"query": query, "variables": variables}, headers=headers)


async def data(client: httpx.AsyncClient, query: str, **variables: Any) -> dict[str, Any]:
    response = await post(client, query, **variables)
    body: dict[str, Any] = response.json()
    assert "errors" not in body, response.text
    return body["data"]  # type: ignore[no-any-return]


async def refused(client: httpx.AsyncClient, query: str, **variables: Any) -> dict[str, Any]:
    """The extensions of the first error."""
    extensions: dict[str, Any] = (await post(client, query, **variables)).json()["errors"][0]["extensions"]
    return extensions


def seen(item: Item) -> dict[str, Any]:
    return {"id": item["id"], "revision": item["revision"], "hash": item["hash"]}


def test_committed_schema_is_the_served_one() -> None:
    assert SCHEMA.read_text() == schema().as_str() + "\n", "write docs/schema.graphql again: see docs/graphql.md"


async def test_list_pages_and_filters_as_in_rest(office: Office) -> None:
    thread = await office.thread()
    for number in range(3):
        await office.request(title=f"Paged {number}", thread_ids=[thread])
    query = (
        'query($after: String) { inboxItems(filter: "is:pending Paged", first: 2, after: $after)'
        " { items { id title links actions { name argsText } } next counts { pending } } }"
    )
    page = (await data(office.ana, query))["inboxItems"]
    rest = (await data(office.ana, query, after=page["next"]))["inboxItems"]
    listed = [item["id"] for item in await office.items("is:pending Paged")]
    assert [item["id"] for item in (*page["items"], *rest["items"])] == listed
    assert (page["counts"]["pending"], rest["next"]) == (3, None)
    assert page["items"][0]["links"] == [thread]
    assert page["items"][0]["actions"][0]["argsText"] == '{"limit":5}'
    assert (await refused(office.ana, '{ inboxItems(filter: "is:nothing") { next } }'))["code"] == "invalid_request"


async def test_an_item_is_created_sent_back_resubmitted_and_approved(office: Office) -> None:
    """The whole life of a request, by mutations only."""
    create = (
        'mutation { createInboxItem(input: {type: "deploy", title: "Deploy", payload: {v: 1}}) {id revision hash} }'
    )
    item = (await data(office.agent, create))["createInboxItem"]
    send_back = f'mutation({SEEN}) {{ requestRevision({GIVEN}, notes: "v2 please") {{ status revision }} }}'
    assert (await data(office.ana, send_back, **seen(item)))["requestRevision"]["status"] == "REVISION_REQUESTED"
    comment = f'mutation {{ addInboxItemComment(id: "{item["id"]}", text: "and soon") {{ text actor }} }}'
    assert (await data(office.ana, comment))["addInboxItemComment"]["text"] == "and soon"
    again = f'mutation {{ resubmitInboxItem(id: "{item["id"]}", input: {{payload: {{v: 2}}}}) {{ id revision hash }} }}'
    revised = (await data(office.agent, again))["resubmitInboxItem"]
    stale = await refused(office.ana, APPROVE, **seen(item))
    assert (stale["code"], stale["revision"], stale["hash"]) == ("stale_revision", 2, revised["hash"])
    approved = (await data(office.ana, APPROVE, **seen(revised)))["approveInboxItem"]
    assert (approved["status"], approved["decisions"][-1]["via"]) == ("APPROVED", "graphql")
    told = await data(office.ana, f'{{ activityLog(itemId: "{item["id"]}", first: 3) {{ entries {{ kind }} next }} }}')
    assert told["activityLog"]["entries"][0]["kind"] == "item.approved"
    before = (
        f'{{ activityLog(itemId: "{item["id"]}", after: "{told["activityLog"]["next"]}") {{ entries {{ kind }} }} }}'
    )
    kinds = [entry["kind"] for entry in (await data(office.ana, before))["activityLog"]["entries"]]
    assert kinds == ["item.revision_requested", "item.created"]


async def test_other_mutations_change_the_item(office: Office) -> None:
    thread, item = await office.thread(), await office.request()
    add = f'mutation {{ addInboxItemLink(id: "{item["id"]}", threadId: "{thread}") {{ links }} }}'
    assert (await data(office.agent, add))["addInboxItemLink"]["links"] == [thread]
    remove = add.replace("add", "remove", 1)
    assert (await data(office.agent, remove))["removeInboxItemLink"]["links"] == []
    alias = f'mutation({SEEN}) {{ requestRevisionInboxItem({GIVEN}, notes: "no") {{ status }} }}'
    assert (await data(office.ana, alias, **seen(item)))["requestRevisionInboxItem"]["status"] == "REVISION_REQUESTED"
    cancel = f'mutation {{ cancelInboxItem(id: "{item["id"]}") {{ status resolution }} }}'
    assert (await data(office.agent, cancel))["cancelInboxItem"]["status"] == "CANCELLED"
    other = await office.request()
    reject = f'mutation({SEEN}) {{ rejectInboxItem({GIVEN}, message: "too much") {{ status }} }}'
    assert (await data(office.ana, reject, **seen(other)))["rejectInboxItem"]["status"] == "REJECTED"
    edited = await office.request(actions=[{"name": "pay", "args": {"amount": 5}}])
    decide = (
        "mutation($id: ID!, $decision: DecisionInput!) { decideInboxItem(id: $id, decision: $decision) {resolution} }"
    )
    verdict = {"key": "0", "verb": "EDIT", "args": {"amount": 4}}
    decision = {"revision": edited["revision"], "hash": edited["hash"], "actions": [verdict]}
    assert (await data(office.ana, decide, id=edited["id"], decision=decision))["decideInboxItem"][
        "resolution"
    ] == "edited"


@pytest.mark.promise("REVIEW-42")
@pytest.mark.parametrize(
    ("mutation", "status"),
    [
        ("acceptAgentWorkspaceReview(runId: $run, revision: $revision, hash: $hash)", "APPROVED"),
        ("cancelAgentWorkspaceReview(runId: $run, revision: $revision, hash: $hash)", "REJECTED"),
        (
            'resumeAgentWorkspaceRun(runId: $run, revision: $revision, hash: $hash, responseMarkdown: "shorter")',
            "REVISION_REQUESTED",
        ),
    ],
)
async def test_reviews_of_work_are_decided_by_their_run(office: Office, mutation: str, status: str) -> None:
    run = f"run-{status}"
    made = await office.agent.post("/api/workspace-reviews", json={"run_id": run, "body": "# Done"})
    assert made.status_code == 201, made.text
    item, field = made.json(), mutation.split("(")[0]
    query = f"mutation($run: ID!, $revision: Int!, $hash: String!) {{ {mutation} {{ id status }} }}"
    seen = {"run": run, "revision": item["revision"], "hash": item["hash"]}
    theirs = office.house.client(await office.house.person(f"eve-{status}", Role.ADMIN, tenant="acme"))
    assert (await refused(theirs, query, **seen))["code"] == "not_found"
    assert (await data(office.ana, query, **seen))[field] == {"id": item["id"], "status": status}


@pytest.mark.promise("REVIEW-34")
async def test_route_of_a_review_says_what_to_check(office: Office) -> None:
    event = {"run_id": "run-routed", "body": "# Done"}
    item = (await office.agent.post("/api/workspace-reviews", json=event)).json()
    query = f'{{ inboxItem(id: "{item["id"]}") {{ routing {{ kind chain reason advice }} }} }}'
    routing = (await data(office.ana, query))["inboxItem"]["routing"]
    assert routing == {"kind": "unrouted", "chain": ["a agent"], "reason": "orphan", "advice": ADVICE[Reason.ORPHAN]}
    assert item["routing"].items() >= routing.items(), "as in REST"


async def test_agents_are_listed(office: Office) -> None:
    admin = office.house.client(await office.house.person("root", Role.ADMIN))
    assert (await admin.post("/api/agents", json={"name": "writer", "human": "ana"})).status_code == 201
    page = (await data(admin, "{ agents(first: 100) { items { name human source } next } }"))["agents"]
    assert {"name": "writer", "human": "ana", "source": "user"} in page["items"]
    query = 'query($by: String, $of: String) { agents(human: $by, source: $of, text: "Writ") { items { name } } }'
    assert (await data(admin, query, by="ana", of="user"))["agents"]["items"] == [{"name": "writer"}]
    assert (await data(admin, query, by="ana", of="system"))["agents"]["items"] == []
    assert (await refused(admin, query, of="x"))["code"] == "invalid_request"


@pytest.mark.promise("P6")
async def test_agents_services_and_other_tenants_decide_nothing(office: Office) -> None:
    item = await office.request()
    theirs = office.house.client(await office.house.person("eve", Role.ADMIN, tenant="acme"))
    assert (await refused(office.agent, APPROVE, **seen(item)))["code"] == "not_allowed"
    assert (await refused(theirs, APPROVE, **seen(item)))["code"] == "not_found"
    assert (await office.get(item["id"]))["status"] == "PENDING"


async def test_idempotency_keys_are_those_of_rest(office: Office) -> None:
    create = 'mutation { createInboxItem(input: {type: "a", title: "Once"}) { id } }'
    made = [(await post(office.agent, create, key="k-1")).json()["data"]["createInboxItem"]["id"] for _ in range(2)]
    assert made[0] == made[1]
    named = create.replace("}) {", '}, idempotencyKey: "k-1") {')
    assert (await data(office.agent, named))["createInboxItem"]["id"] == made[0]
    other = await refused(office.agent, named.replace("Once", "Another"))
    rest = await office.agent.post(
        "/api/inbox/items", json={"type": "a", "title": "Another"}, headers={"Idempotency-Key": "k-1"}
    )
    assert (other["code"], other["status"]) == (rest.json()["code"], rest.status_code)


async def test_errors_are_those_of_rest(office: Office) -> None:
    item = await office.decided(await office.request(), "approve")
    graphql = await refused(office.ana, APPROVE, **seen(item))
    rest = (await office.decide(item, "approve")).json()
    shared = ("code", "status", "decision")
    assert [graphql[name] for name in shared] == [rest[name] for name in shared]
    invalid = await refused(office.agent, 'mutation { createInboxItem(input: {type: "a b", title: ""}) { id } }')
    assert (invalid["code"], {error["path"] for error in invalid["errors"]}) == ("invalid_request", {"type", "title"})
    assert (await refused(office.ana, "{ activityLog { next } }"))["missing"] == ["audit:read"]


# Limits

DEEP = "{ inboxItem(id: 1) " + "{ item " * 300 + "}" * 301
WIDE = "{ inboxItems { items { " + "id " * 5000 + "} } }"
ALIASES = "{ " + " ".join(f"a{n}: inboxItem(id: {n}) {{ id }}" for n in range(200)) + " }"
SPREAD = " ".join(
    [f"fragment f{n} on InboxItemPage {{ ...f{n + 1} ...f{n + 1} }}" for n in range(14)]
    + ["fragment f14 on InboxItemPage { next }", "{ inboxItems { ...f0 } }"]
)
CYCLE = "{ inboxItems { ...a } } fragment a on InboxItemPage { ...b } fragment b on InboxItemPage { ...a }"
COSTLY = (
    "{ inboxItems(first: 200) { items { comments { text } revisions { title } timeline { kind } actions { name } } } }"
)
VARIABLE = "query($n: Int) " + COSTLY.replace("200", "$n").replace(
    "actions { name }", "decisions { via } actions { name }"
)


@pytest.mark.parametrize(
    ("value", "given", "reason"),
    [
        ("[" * 64 + "]" * 64, None, "nesting of values"),
        ("{a: " * 100 + "1" + "}" * 100, None, "nesting of values"),
        ("[" * 30 + "$given" + "]" * 30, json.loads("[" * 40 + "]" * 40), "nesting of values"),
        ("[" * 30 + "$deep" + "]" * 30, None, "nesting of values"),
        ("9" * 301, None, "digits of an integer"),
    ],
)
async def test_value_in_a_document_has_the_limits_of_a_body(
    office: Office, value: str, given: Any, reason: str
) -> None:
    create = "mutation($given: JSON, $deep: JSON = " + "[" * 40 + "]" * 40 + ") { createInboxItem("
    create += f'input: {{type: "a", title: "a", payload: {{v: {value}, w: [$given, $deep]}}}}) {{ id }} }}'
    body = (await post(office.agent, create, given=given)).json()
    assert body["errors"][0]["message"].startswith(f"{reason}: at most"), body


async def test_value_in_a_document_within_the_limits_is_accepted(office: Office) -> None:
    """The control: a little less of each."""
    value = "[" * 20 + "$given" + "]" * 20
    create = f'mutation($given: JSON) {{ createInboxItem(input: {{type: "a", title: "a", payload: {{v: {value}, n: '
    item = await data(office.agent, create + "9" * 300 + "}}) { payload } }", given=json.loads("[" * 40 + "]" * 40))
    assert item["createInboxItem"]["payload"] == {"v": json.loads("[" * 60 + "]" * 60), "n": int("9" * 300)}


META = "{ __schema { types " + "{ fields { type " * 4 + "{ name args { name } }" + "} }" * 4 + "} }"
INLINE = "{ inboxItems " + "{ ... " * 120 + "{ next }" + "}" * 120 + "}"
REPEATED = "{ inboxItems { next " + "...a " * 2500 + "} } fragment a on InboxItemPage { next }"
OVERLAP = (
    "{ inboxItems { items { "
    + " ".join(f"...g{n}" for n in range(90))
    + " } } } "
    + " ".join(f"fragment g{n} on InboxItem {{ " + "title " * 6 + "}" for n in range(90))
)
SAME_FIELDS = "{ " + 'inboxItem(id: "0123456789") { id } ' * 240 + "}"
SAME_IN_FRAGMENTS = "{ inboxItem(id: 1) { " + "... on InboxItem { id id } " * 240 + "} }"
UNUSED = "{ inboxItems { next } } " + " ".join(
    f"fragment f{n} on InboxItem {{ id " + " ".join(f"...f{m}" for m in range(n + 1, 45)) + " }" for n in range(45)
)
LONG = '{ inboxItem(id: "' + "x" * 3_000_000 + '") { id } }'
LISTS = 'mutation { createInboxItem(input: {type: "a", title: "a", payload: ' + "[" * 2000 + "]" * 2000 + "}) { id } }"
BOMBS = {
    "deep": DEEP,
    "wide": WIDE,
    "aliases": ALIASES,
    "fragments that double": SPREAD,
    "a cycle of fragments": CYCLE,
    "costly": COSTLY,
    "costly by a variable": VARIABLE,
    "introspection": META,
    "inline fragments": INLINE,
    "one fragment repeated": REPEATED,
    "overlapping fragments": OVERLAP,
    "one field repeated": SAME_FIELDS,
    "one field repeated in fragments": SAME_IN_FRAGMENTS,
    "unused fragments": UNUSED,
    "a long text": LONG,
    "nested lists": LISTS,
}


@pytest.mark.scoreboard
async def test_bombs_are_refused_quickly(office: Office, count: Count, record_score: RecordScore) -> None:
    await data(office.ana, "{ inboxItems { next } }")
    slowest, answers = 0.0, {}
    for name, bomb in BOMBS.items():
        started = time.perf_counter()
        response = await post(office.ana, bomb, n=200)
        slowest = max(slowest, time.perf_counter() - started)
        answers[name] = response.status_code
        assert response.json()["errors"], name
    record_score(f"{len(BOMBS)} GraphQL bombs", "refused under 200 ms", f"all refused, slowest {slowest * 1000:.0f} ms")
    assert set(answers.values()) == {400}, answers
    assert slowest < count(full=200, quick=1500) / 1000  # the normal run shares its machine


@pytest.mark.parametrize("name", ["aliases", "costly", "fragments that double", "one field repeated"])
async def test_control_without_the_limits_a_bomb_is_executed(
    office: Office, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("MAX_DEPTH", "MAX_ALIASES", "MAX_FIELDS", "MAX_COST", "MAX_REPEATED"):
        monkeypatch.setattr(limits, limit, 10**9)
    response = await post(office.ana, BOMBS[name])
    assert response.status_code == 200, response.text
    assert response.json()["data"]


CREATE = "mutation($input: CreateInboxItemInput!) { createInboxItem(input: $input) { id } }"
MANY_ACTIONS = {"type": "a", "title": "a", "actions": [{"name": "a"}] * 10_000}


async def test_variables_with_many_values_of_inputs_are_refused(office: Office) -> None:
    answer = await post(office.ana, CREATE, input=MANY_ACTIONS)
    assert answer.status_code == 400, answer.text
    assert answer.json()["errors"][0]["message"].startswith("variables: at most 2,000 values")
    payload = {"type": "a", "title": "a", "payload": ["x"] * 5_000}
    assert (await data(office.ana, CREATE, input=payload))["createInboxItem"], "JSON is read as it is"


async def test_control_without_the_limit_of_variables_all_values_are_converted(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MOST_INPUT_VALUES", 10**9)
    assert "at most 100 items" in (await post(office.ana, CREATE, input=MANY_ACTIONS)).text


async def test_tools_can_introspect_the_schema(office: Office) -> None:
    response = await data(office.ana, get_introspection_query(input_value_deprecation=True))
    assert response["__schema"]["subscriptionType"]["name"] == "Subscription"


# Persisted queries


async def test_a_persisted_query_is_sent_by_its_hash(office: Office) -> None:
    query = "{ inboxItems(first: 1) { counts { pending } } }"
    extensions = {"persistedQuery": {"version": 1, "sha256Hash": hashlib.sha256(query.encode()).hexdigest()}}

    async def send(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
        answer: dict[str, Any] = (await client.post("/graphql", json={"extensions": extensions, **body})).json()
        return answer

    assert (await send(office.ana))["errors"][0]["message"] == "PersistedQueryNotFound"
    assert "errors" in await send(office.ana, query="{ inboxItems { next } }")  # another document
    assert (await send(office.ana, query=query))["data"]["inboxItems"]
    assert (await send(office.ben))["data"]["inboxItems"]
    theirs = office.house.client(await office.house.person("eli", tenant="acme"))
    assert (await send(theirs))["errors"][0]["message"] == "PersistedQueryNotFound"


# Transport


async def test_a_page_of_another_origin_cannot_use_the_cookie(office: Office) -> None:
    browser = await office.house.signed_in("zoe")
    body = {"query": "{ inboxItems { next } }"}
    assert (await browser.post("/graphql", json=body)).status_code == 200
    assert (await browser.post("/graphql", json=body, headers={"origin": "https://evil.example"})).status_code == 403
    form = await browser.post("/graphql", content='{"query": "{ inboxItems { next } }"}')
    assert form.status_code == 422  # a form can send text/plain, not JSON


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'"x"', b'{"query": 5}', b'{"query": "{"}', b'{"query": "{a}", "x": 1}', b'{"query": ""}']
)
async def test_malformed_bodies_are_refused(office: Office, body: bytes) -> None:
    response = await office.ana.post("/graphql", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["errors"]


async def test_a_subscription_by_post_needs_an_event_stream(office: Office) -> None:
    assert (await refused(office.ana, "subscription { onInboxItemStatusChanged { kind } }"))[
        "code"
    ] == "invalid_request"


@pytest.mark.parametrize(("mode", "status"), [(Mode.DEV, 200), (Mode.SERVE, 405)])
async def test_graphiql_is_served_in_dev_only(build: Builder, mode: Mode, status: int) -> None:
    house = await build(mode)
    page = await house.client(await house.person("ana")).get("/graphql", headers={"accept": "text/html"})
    assert page.status_code == status
    assert ("GraphiQL" in page.text) is (mode is Mode.DEV)


async def test_without_the_extra_the_route_names_it_and_the_rest_works(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "{ inboxItems(first: 1) { next } }"
    assert (await post(office.ana, query)).status_code == 200
    monkeypatch.setitem(extras._MODULES, "graphql", "not_installed")
    for client in (office.ana, office.agent):
        response = await post(client, query)
        body = response.json()
        assert (response.status_code, body["code"], body["extra"]) == (501, "not_installed", "graphql")
        assert "pip install 'assent[graphql]'" in body["hint"]
    assert (await office.ana.get("/api/inbox/items")).status_code == 200
