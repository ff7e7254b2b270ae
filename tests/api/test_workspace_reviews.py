"""Reviews of an agent's work: routed by the registry, one item per run, decided once, and one wake-up."""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from assent.identity.agents import AgentChange
from assent.identity.model.access import Kind, operator
from assent.identity.model.agents import Source
from tests.api.house import Builder
from tests.api.reviewing import GRAPHS, Item, Office, open_office, problem, staff
from tests.receiver import receiving

REVIEW = {
    "kind": "workspace_review",
    "body": "I *tidied* the notes.",
    "proposed_changes": [{"path": "a.md", "summary": "shorter"}],
    "target_path": "/notes",
}
EVENT = {"body": "Look", "proposed_changes": [{"path": "a.md"}], "target_path": "/notes"}
PATH = "/api/workspace-reviews"


@dataclass
class Workspace:
    office: Office
    writer: httpx.AsyncClient
    """The client of the agent `writer`."""

    async def registers(self, **fields: Any) -> None:
        await self.office.house.services.agents.change(operator(), "writer", AgentChange(**fields))

    async def reviewed(self, *questions: Any) -> Item:
        """A run of the writer stops for a review; its item, as its run names it."""
        thread = await self.office.run("asking", {"questions": list(questions) or [REVIEW]}, client=self.writer)
        [item] = await self.office.items(f"is:pending thread:{thread}")
        return await self.office.get(item["id"])

    async def post(self, item: Item, action: str, client: httpx.AsyncClient | None = None, **body: Any) -> Any:
        seen = {"revision": item["revision"], "hash": item["hash"]}
        path = f"{PATH}/{item['entity']['id']}/{action}"
        return await (client or self.office.ana).post(path, json={**seen, **body})

    async def runs(self, item: Item) -> list[str]:
        thread = item["source"]["thread_id"]
        runs = (await self.office.ana.get(f"/threads/{thread}/runs?limit=100")).json()
        return [run["run_id"] for run in runs]

    async def deliveries(self, item: Item) -> list[dict[str, Any]]:
        sent = (await self.office.ana.get(f"/api/deliveries?subject=item:{item['id']}")).json()["items"]
        return list(sent)


@pytest.fixture
async def workspace(build: Builder) -> Workspace:
    office = await open_office(build, outbound_allow=("127.0.0.1",))
    key = await office.house.services.keys.create(operator(), kind=Kind.AGENT, name="writer")
    return Workspace(office, office.house.client(key.secret))


# Routing


@pytest.mark.promise("REVIEW-31")
async def test_review_is_in_the_list_of_the_paired_person_only(workspace: Workspace) -> None:
    office, agents = workspace.office, workspace.office.house.services.agents
    await agents.create(operator(), "lead", AgentChange(human="ana"))
    await workspace.registers(parent="lead")
    item = await workspace.reviewed()
    assert item["title"] == "Workspace review: writer: /notes"
    assert item["routing"]["kind"] == "paired"
    assert item["routing"]["chain"] == ["writer", "lead"]
    assert [row["id"] for row in await office.items("is:pending")] == [item["id"]]
    assert await office.items("is:pending", client=office.ben) == []
    assert (await office.page("", client=office.ben))["counts"]["pending"] == 0
    assert await office.items("is:pending for:me", client=office.ben) == []
    [row] = await office.items("is:pending for:ana", client=office.ben)
    assert row["id"] == item["id"], "others find it if they look for it"


@pytest.mark.promise("REVIEW-30", "REVIEW-32")
async def test_paused_run_of_a_system_agent_makes_a_review_for_the_operators(workspace: Workspace) -> None:
    await workspace.registers(source=Source.SYSTEM)
    item = await workspace.reviewed("May I continue?")
    assert (item["type"], item["dialect"], item["gated"]) == ("workspace_review", "workspace_review", True)
    assert (item["title"], item["recipient"]) == ("Workspace review: writer: May I continue?", None)
    assert item["actions"][0]["args"] == {"body": "May I continue?"}
    assert len(await workspace.office.items("is:pending", client=workspace.office.ben)) == 1
    await workspace.office.decided(item, "approve")
    [answer] = (await workspace.office.values(item["source"]["thread_id"]))["answers"]
    assert answer["decision"] == "approved"


@pytest.mark.parametrize("resume", ["yes", True, {"decision": "approved"}, {"decision": "approved", "x": 1}])
@pytest.mark.parametrize("question", ["May I continue?", REVIEW])
async def test_agent_cannot_approve_its_own_work_through_the_runs_api(
    workspace: Workspace, question: Any, resume: Any
) -> None:
    await workspace.registers(source=Source.SYSTEM)
    item = await workspace.reviewed(question)
    thread = item["source"]["thread_id"]
    refused = await workspace.office.answer(thread, "asking", resume, client=workspace.writer)
    assert refused.status_code in (403, 422), refused.text
    assert (await workspace.office.get(item["id"]))["status"] == "PENDING"
    assert (await workspace.office.state(thread))["values"].get("answers", []) == []


async def test_person_approves_through_the_runs_api_in_the_form_of_the_dialect(workspace: Workspace) -> None:
    item = await workspace.reviewed()
    thread, office = item["source"]["thread_id"], workspace.office
    for wrong in ("yes", {"decision": "approved", "responseMarkdown": "x"}, {"decision": "revision_requested"}):
        assert (await office.answer(thread, "asking", wrong, client=office.ana)).status_code == 422
    answered = await office.answer(thread, "asking", {"decision": "approved"}, client=office.ana)
    assert answered.status_code == 200, answered.text
    assert (await office.get(item["id"]))["status"] == "APPROVED"
    assert (await office.values(thread))["answers"] == [{"decision": "approved", "responseMarkdown": None}]


@pytest.mark.promise("REVIEW-30")
async def test_control_the_same_pause_of_another_agent_is_a_question(workspace: Workspace) -> None:
    assert (await workspace.reviewed("May I continue?"))["type"] == "question"


async def test_tool_approval_of_a_system_agent_stays_one(workspace: Workspace) -> None:
    """Its gate waits for the grant of exactly this call."""
    await workspace.registers(source=Source.SYSTEM)
    call = {"call_id": "c", "tool_name": "pay", "arguments": {"amount": 1}}
    assert (await workspace.reviewed({"kind": "confirmation", "tool_calls": [call]}))["type"] == "tool"


@pytest.mark.promise("REVIEW-33")
async def test_review_without_a_route_goes_to_the_operators_with_a_mark(workspace: Workspace) -> None:
    agents = workspace.office.house.services.agents
    await agents.create(operator(), "lead", AgentChange(human="ana"))
    await workspace.registers(parent="lead")
    await agents.remove(operator(), "lead")
    item = await workspace.reviewed()
    assert item["title"] == "Workspace review (unrouted): writer: /notes"
    assert (item["routing"]["kind"], item["routing"]["reason"]) == ("unrouted", "orphan")
    assert item["routing"]["chain"] == ["writer"]
    assert len(await workspace.office.items("is:pending", client=workspace.office.ben)) == 1


async def test_review_of_a_person_who_may_no_longer_decide_goes_to_the_operators(workspace: Workspace) -> None:
    office = workspace.office
    await workspace.registers(human="ana")
    item = await workspace.reviewed()
    assert await office.items("is:pending", client=office.ben) == []
    await office.house.services.users.change(operator(), "ana", disabled=True)
    [row] = await office.items("is:pending", client=office.ben)
    assert (row["id"], row["recipient"]) == (item["id"], None)
    assert row["title"].startswith("Workspace review (unrouted): ")
    told = (await office.ben.get(f"/api/inbox/items/{item['id']}/timeline")).json()
    assert [event["kind"] for event in told] == ["item.created", "item.rerouted"]
    thread = await office.run("asking", {"questions": [REVIEW]}, client=workspace.writer)
    [later] = await office.items(f"thread:{thread}", client=office.ben)
    assert later["routing"]["reason"] == "pair"


async def test_run_of_a_person_belongs_to_the_agent_with_the_name_of_its_graph(workspace: Workspace) -> None:
    office = workspace.office
    await office.house.services.agents.create(operator(), "asking", AgentChange(human="ben"))
    thread = await office.run("asking", {"questions": [REVIEW]}, client=office.ana)
    [item] = await office.items("is:pending", client=office.ben)
    assert (item["source"]["thread_id"], item["routing"]["chain"]) == (thread, ["asking"])


# The item and its decisions


@pytest.mark.promise("REVIEW-35")
async def test_item_names_its_run_and_has_the_content_of_the_review(workspace: Workspace) -> None:
    item = await workspace.reviewed()
    assert item["type"] == "workspace_review"
    assert item["entity"] == {"type": "agent_workspace_run", "id": item["source"]["run_id"]}
    content = {name: value for name, value in REVIEW.items() if name != "kind"}
    assert item["actions"][0]["args"] == content
    assert item["actions"][0]["allowed"] == ["approve", "reject"]
    by_run = await workspace.office.ana.get(f"{PATH}/{item['entity']['id']}")
    assert by_run.json() == await workspace.office.get(item["id"])


@pytest.mark.promise("REVIEW-37", "REVIEW-40")
@pytest.mark.parametrize("by", ["inbox", "acceptance"])
async def test_approval_resumes_the_run_with_one_wake_up(workspace: Workspace, by: str) -> None:
    item = await workspace.reviewed()
    before = await workspace.runs(item)
    if by == "inbox":
        decided = await workspace.office.decided(item, "approve")
    else:
        accepted = await workspace.post(item, "acceptance", notes="fine")
        assert accepted.status_code == 200, accepted.text
        decided = accepted.json()
    assert (decided["status"], decided["delivery"]["kind"]) == ("APPROVED", "resume"), "queued in the same call"
    values = await workspace.office.values(item["source"]["thread_id"])
    assert values["answers"] == [{"decision": "approved", "responseMarkdown": None}]
    [wake_up] = await workspace.deliveries(item)
    assert set(await workspace.runs(item)) - set(before) == {wake_up["id"]}, "the delivery is the only run"
    problem(await workspace.post(item, "acceptance"), 409, "already_decided")


@pytest.mark.promise("REVIEW-38")
@pytest.mark.parametrize("by", ["inbox", "cancellation"])
async def test_rejection_cancels_the_run_and_wakes_nobody(workspace: Workspace, by: str) -> None:
    item = await workspace.reviewed(REVIEW, "never asked")
    before = await workspace.runs(item)
    if by == "inbox":
        await workspace.office.decided(item, "reject")
    else:
        assert (await workspace.post(item, "cancellation", notes="no")).json()["status"] == "REJECTED"
    state = await workspace.office.rests(item["source"]["thread_id"], status="idle")
    assert state["values"].get("answers", []) == []
    assert await workspace.runs(item) == before, "no run was started"
    assert (await workspace.office.get(item["id"]))["status"] == "REJECTED"


@pytest.mark.promise("REVIEW-39")
@pytest.mark.parametrize("by", ["inbox", "resumption"])
async def test_request_for_a_revision_resumes_with_the_notes(workspace: Workspace, by: str) -> None:
    office = workspace.office
    item = await workspace.reviewed(REVIEW, {**REVIEW, "body": "Shorter now."})
    await office.post(item, "comments", text="two pages at most")
    if by == "inbox":
        assert (await office.ask_revision(item, notes="make it **shorter**")).status_code == 200
    else:
        asked = await workspace.post(item, "resumption", response_markdown="make it **shorter**")
        assert asked.json()["status"] == "REVISION_REQUESTED"
    state = await office.rests(item["source"]["thread_id"], status="interrupted")
    [answer] = state["values"]["answers"]
    assert answer["decision"] == "revision_requested"
    assert answer["responseMarkdown"].startswith("make it **shorter**")
    assert "two pages at most" in answer["responseMarkdown"], "comments reach the paused agent"
    again = await office.get(item["id"])
    assert (again["status"], again["revision"]) == ("PENDING", 2)
    assert again["actions"][0]["args"]["body"] == "Shorter now."
    assert (again["entity"], again["source"]["run_id"]) != (item["entity"], item["source"]["run_id"])
    assert again["entity"] == item["entity"], "the item of the first run"
    by_later_run = await office.ana.get(f"{PATH}/{again['source']['run_id']}")
    assert by_later_run.json()["id"] == item["id"]
    problem(await workspace.post(item, "acceptance"), 409, "stale_revision")
    assert (await workspace.post(again, "acceptance")).status_code == 200


# Runs elsewhere


async def asked(client: httpx.AsyncClient, run_id: str = "run-1", **more: Any) -> httpx.Response:
    return await client.post(PATH, json={"run_id": run_id, **EVENT, **more})


@pytest.mark.promise("REVIEW-36")
async def test_replayed_event_finds_the_item_of_its_run(workspace: Workspace) -> None:
    office, house = workspace.office, workspace.office.house
    other_key = await house.services.keys.create(operator(), kind=Kind.AGENT, agent="writer")
    service = house.client(await house.key(Kind.SERVICE))
    writers = [workspace.writer, house.client(other_key.secret)] * 4
    sent = [*(asked(sender) for sender in writers), *(asked(service, agent="writer") for _ in range(4))]
    answers = await asyncio.gather(*sent)
    assert sorted(answer.status_code for answer in answers) == [200] * 11 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(await office.items("entity:run-1")) == 1
    await office.decided(answers[0].json(), "approve")
    late = await asked(workspace.writer)
    assert (late.status_code, late.json()["status"]) == (200, "APPROVED")


async def test_run_id_of_another_agent_is_refused_and_its_review_not_shown(workspace: Workspace) -> None:
    """Else the approval of the first sender's harmless text would be read as that of the second one's work."""
    office, house = workspace.office, workspace.office.house
    first = await asked(office.agent, body="Fix a typo")
    assert first.status_code == 201
    service = house.client(await house.key(Kind.SERVICE))
    for sender in (workspace.writer, service):
        for body in ("Delete production", "Fix a typo"):
            refused = await asked(sender, body=body)
            problem(refused, 409, "conflict")
            assert first.json()["id"] not in refused.text
    problem(await asked(service, body="Fix a typo", agent="writer"), 409, "conflict")
    assert len(await office.items("entity:run-1")) == 1


async def test_event_with_other_content_is_refused_until_a_revision_is_requested(workspace: Workspace) -> None:
    item = (await asked(workspace.writer)).json()
    problem(await asked(workspace.writer, body="Delete production"), 409, "conflict")
    service = workspace.office.house.client(await workspace.office.house.key(Kind.SERVICE))
    problem(await asked(service, body="Delete production", agent="writer"), 409, "conflict")
    await workspace.office.decided(item, "approve")
    problem(await asked(workspace.writer, body="Delete production"), 409, "conflict")
    assert (await asked(workspace.writer)).status_code == 200


async def test_event_shows_the_review_of_another_requester_to_its_readers_only(workspace: Workspace) -> None:
    house = workspace.office.house
    assert (await asked(workspace.writer)).status_code == 201
    blind = house.client(await house.key(Kind.SERVICE, "items:create"))
    problem(await asked(blind, agent="writer"), 403, "not_allowed")
    own = await asked(blind, "run-2", agent="writer")
    assert (own.status_code, (await asked(blind, "run-2", agent="writer")).status_code) == (201, 200)
    item = await workspace.reviewed()
    blind_person = house.client(await house.key_of("ana", "items:create"))
    problem(await asked(blind_person, item["source"]["run_id"]), 403, "not_allowed")
    assert (await asked(workspace.office.ana, item["source"]["run_id"])).json()["id"] == item["id"]


async def test_event_shows_no_review_hidden_by_the_auth_handlers(build: Builder) -> None:
    office = await staff(await build(config=GRAPHS.parents[1] / "graphs_auth" / "langgraph.json"))
    await office.house.services.agents.create(operator(), "whoami", AgentChange(source=Source.SYSTEM))
    users = ("owner:ada", "own reviewer")
    ada, otto = (office.house.client(headers={"authorization": f"Bearer {who}"}) for who in users)
    thread = await office.run("whoami", {"ask": True}, client=ada)
    [item] = await office.items(f"is:pending thread:{thread}")
    assert item["type"] == "workspace_review"
    assert (await asked(ada, item["source"]["run_id"])).json()["id"] == item["id"]
    problem(await asked(otto, item["source"]["run_id"]), 404, "not_found")


@pytest.mark.promise("REVIEW-36")
async def test_event_about_a_run_of_this_server_finds_its_item(workspace: Workspace) -> None:
    item = await workspace.reviewed()
    replay = await asked(workspace.writer, item["source"]["run_id"], body="harmless")
    assert (replay.status_code, replay.json()["id"]) == (200, item["id"])
    assert replay.json()["actions"] == item["actions"], "the question is that of the run"
    problem(await asked(workspace.office.agent, item["source"]["run_id"]), 404, "not_found")
    thread = await workspace.office.run("echo", {"text": "hi"}, client=workspace.writer)
    [run] = (await workspace.writer.get(f"/threads/{thread}/runs")).json()
    problem(await asked(workspace.writer, run["run_id"]), 409, "conflict")


@pytest.mark.promise("REVIEW-37", "REVIEW-38", "REVIEW-39", "REVIEW-40")
async def test_run_elsewhere_is_woken_once_or_not_at_all(workspace: Workspace) -> None:
    await workspace.registers(human="ana")
    async with receiving() as receiver:
        first = (await asked(workspace.writer, callback=receiver.url)).json()
        assert first["recipient"] is not None
        assert first["entity"] == {"type": "agent_workspace_run", "id": "run-1"}
        await workspace.post(first, "resumption", response_markdown="shorter")
        [call] = await receiver.has(1)
        told = call.json
        assert (told["run_id"], told["status"], told["responseMarkdown"]) == ("run-1", "REVISION_REQUESTED", "shorter")
        assert (await asked(workspace.writer, callback=receiver.url)).status_code == 200, "a replay of revision 1"
        second = await asked(workspace.writer, body="Shorter")
        assert (second.status_code, second.json()["id"], second.json()["revision"]) == (201, first["id"], 2)
        assert (await workspace.post(second.json(), "acceptance")).json()["status"] == "APPROVED"
        woken = (await receiver.has(2))[1].json
        assert (woken["status"], woken["responseMarkdown"]) == ("APPROVED", None)
        rejected = (await asked(workspace.writer, "run-2", callback=receiver.url)).json()
        assert (await workspace.post(rejected, "cancellation")).json()["status"] == "REJECTED"
        assert await workspace.deliveries(rejected) == []
    assert len(receiver.calls) == 2


# Rights


@pytest.mark.promise("REVIEW-42")
async def test_people_decide_with_their_keys_and_programs_do_not(workspace: Workspace) -> None:
    office, house = workspace.office, workspace.office.house
    item = await workspace.reviewed()
    service = house.client(await house.key(Kind.SERVICE))
    for client in (workspace.writer, office.agent, service):
        for verb in ("approve", "reject"):
            problem(await office.decide(item, verb, client), 403, "not_allowed")
        problem(await office.ask_revision(item, client=client), 403, "not_allowed")
        problem(await workspace.post(item, "acceptance", client), 403, "not_allowed")
        refused = await workspace.post(item, "resumption", client, response_markdown="x")
        problem(refused, 403, "not_allowed")
    for client in (office.agent, service):
        problem(await workspace.post(item, "cancellation", client), 403, "not_allowed")
    foreign = house.client(await house.person("eve", tenant="acme"))
    for verb in ("approve", "reject"):
        problem(await office.decide(item, verb, foreign), 404, "not_found")
    problem(await office.ask_revision(item, client=foreign), 404, "not_found")
    for action in ("acceptance", "cancellation"):
        problem(await workspace.post(item, action, foreign), 404, "not_found")
    problem(await workspace.post(item, "resumption", foreign, response_markdown="x"), 404, "not_found")
    problem(await foreign.get(f"{PATH}/{item['entity']['id']}"), 404, "not_found")
    assert (await workspace.post(item, "acceptance")).json()["status"] == "APPROVED"


@pytest.mark.promise("REVIEW-42")
async def test_agent_withdraws_its_own_review(workspace: Workspace) -> None:
    item = await workspace.reviewed()
    gone = (await workspace.post(item, "cancellation", workspace.writer, notes="not needed")).json()
    assert (gone["status"], gone["resolution"]) == ("CANCELLED", "withdrawn")
    await workspace.office.rests(item["source"]["thread_id"], status="idle")


async def test_wrong_event_is_refused_with_its_field(workspace: Workspace) -> None:
    for body, named in (
        ({"body": ""}, "body"),
        ({"proposed_changes": "x"}, "proposed_changes"),
        ({"agent": "nobody"}, "nobody"),
        ({"callback": "http://10.0.0.1/"}, "10.0.0.1"),
        ({"colour": "red"}, "colour"),
    ):
        refused = await asked(workspace.writer, **body)
        assert refused.status_code in (404, 422), refused.text
        assert named in refused.text
    problem(await asked(workspace.writer, agent="a agent"), 403, "not_allowed")


async def test_review_is_not_resubmitted_as_a_plain_request(workspace: Workspace) -> None:
    item = (await asked(workspace.writer)).json()
    await workspace.post(item, "resumption", response_markdown="shorter")
    problem(await workspace.office.post(item, "resubmission", workspace.writer, title="x"), 409, "conflict")
