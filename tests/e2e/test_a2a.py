"""The A2A endpoint with the official client of the protocol, versions 1.0 and 0.3, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
from a2a.client.client import Client, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict, ParseDict

from tests.e2e.holding import Gates
from tests.graphs_gated.attempts import script
from tests.graphs_gated.serving import GRAPHS as GATED
from tests.graphs_gated.serving import SECRET, make_keys
from tests.servers import ServerProcess, dev_server, running
from tests.waiting import until

Json = dict[str, Any]
VERSIONS = ["1.0", "0.3"]


@asynccontextmanager
async def agent(
    url: str, graph: str, *, version: str = "1.0", streaming: bool = False, key: str | None = None
) -> AsyncIterator[Client]:
    """The official client, by the agent's card; of the interfaces there, only those of `version` are left."""
    async with httpx.AsyncClient(headers={"x-api-key": key} if key else {}, timeout=60) as http:
        factory = ClientFactory(ClientConfig(streaming=streaming, httpx_client=http))
        assistant_id = (await http.post(f"{url}/assistants/search", json={"graph_id": graph})).json()[0]["assistant_id"]
        client = await factory.create_from_url(f"{url}/a2a/{assistant_id}")
        if version != "1.0":
            card = client._card  # type: ignore[attr-defined]
            others = [one for one in card.supported_interfaces if one.protocol_version != version]
            for one in others:
                card.supported_interfaces.remove(one)
            client = factory.create(card)
        yield client


def says(
    text: str | None = None, *, data: Json | None = None, task: Task | None = None, context_id: str = ""
) -> SendMessageRequest:
    part = Part(text=text) if data is None else ParseDict({"data": data}, Part())
    message = Message(role=Role.ROLE_USER, message_id=str(uuid4()), parts=[part], context_id=context_id)
    if task is not None:
        message.task_id, message.context_id = task.id, task.context_id
    return SendMessageRequest(message=message)


async def events(client: Client, request: SendMessageRequest) -> list[StreamResponse]:
    return [event async for event in client.send_message(request)]


async def task_of(client: Client, request: SendMessageRequest) -> Task:
    [answer] = await events(client, request)
    return answer.task


def state(task: Task) -> str:
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_")


def text(task: Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


def data(task: Task) -> list[Json]:
    parts = [part for artifact in task.artifacts for part in artifact.parts if part.HasField("data")]
    return [MessageToDict(part)["data"] for part in parts]


@pytest.mark.parametrize("version", VERSIONS)
async def test_message_is_answered_and_its_context_continues(server: ServerProcess, version: str) -> None:
    async with agent(server.url, "chat", version=version) as client:
        first = await task_of(client, says("hello"))
        assert (state(first), text(first).strip()) == ("COMPLETED", "you said: hello")
        assert [Role.Name(said.role) for said in first.history] == ["ROLE_USER", "ROLE_AGENT"]
        second = await task_of(client, says("more", context_id=first.context_id))
        assert second.context_id == first.context_id
        assert second.id != first.id
        assert text(second).strip() == "you said: more"
        assert len(second.history) == 4
        older = await client.get_task(GetTaskRequest(id=first.id))
        assert (state(older), text(older).strip()) == ("COMPLETED", "you said: hello")
        assert len((await client.get_task(GetTaskRequest(id=second.id, history_length=1))).history) == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_stream_has_the_task_its_words_its_artifact_and_its_end(server: ServerProcess, version: str) -> None:
    async with agent(server.url, "chat", version=version, streaming=True) as client:
        seen = await events(client, says("hello"))
    kinds = [event.WhichOneof("payload") for event in seen]
    assert kinds[0] == "task"
    assert kinds[-2:] == ["artifact_update", "status_update"]
    words = [part.text for event in seen for part in event.status_update.status.message.parts]
    assert "you " in words[0]
    assert words[-1].strip() == "you said: hello"
    assert seen[-2].artifact_update.artifact.parts[0].text.strip() == "you said: hello"
    assert seen[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
async def test_question_requires_input_and_takes_an_answer(
    server: ServerProcess, version: str, streaming: bool
) -> None:
    async with agent(server.url, "twice", version=version, streaming=streaming) as client:
        first = (await events(client, says(data={"text": "x"})))[0].task
        asked = await client.get_task(GetTaskRequest(id=first.id))
        assert state(asked) == "INPUT_REQUIRED"
        assert [(question["value"], question["gated"]) for question in data(asked)] == [("first?", False)]
        again = (await events(client, says("one", task=first)))[-1]
        waiting = TaskState.TASK_STATE_INPUT_REQUIRED
        assert waiting in (again.task.status.state, again.status_update.status.state)
        await events(client, says(data={"resume": "two"}, task=first))
        done = await client.get_task(GetTaskRequest(id=first.id))
        assert state(done) == "COMPLETED"
        assert data(done)[0]["answers"] == ["one", "two"]
        with pytest.raises(UnsupportedOperationError):
            await events(client, says("three", task=first))


async def test_several_questions_are_answered_by_their_ids(server: ServerProcess) -> None:
    async with agent(server.url, "parallel") as client:
        asked = await task_of(client, says(data={"text": "x"}))
        questions = data(asked)
        assert len(questions) == 2
        with pytest.raises(InvalidParamsError):
            await task_of(client, says("yes", task=asked))
        answers = {question["id"]: question["value"]["question"] for question in questions}
        done = await task_of(client, says(data={"resume": answers}, task=asked))
        assert (state(done), sorted(data(done)[0]["answers"])) == ("COMPLETED", ["left=left?", "right=right?"])


async def test_breakpoint_requires_input_and_continues(server: ServerProcess) -> None:
    async with agent(server.url, "breakpoint") as client:
        asked = await task_of(client, says(data={"text": "x"}))
        assert (state(asked), data(asked)) == ("INPUT_REQUIRED", [{"stopped_before": ["publish"]}])
        done = await task_of(client, says(data={"resume": True}, task=asked))
        assert data(done)[0]["answer"] == "published: x, prepared"


async def test_failed_run_is_a_failed_task(server: ServerProcess) -> None:
    async with agent(server.url, "failing") as client:
        failed = await task_of(client, says(data={"text": "x"}))
        assert state(failed) == "FAILED"
        assert "ValueError" in failed.status.message.parts[0].text
        assert state(await client.get_task(GetTaskRequest(id=failed.id))) == "FAILED"


@pytest.mark.parametrize("version", VERSIONS)
async def test_working_task_is_canceled(server: ServerProcess, version: str) -> None:
    async with agent(server.url, "slow", version=version) as client:
        request = says(data={"delay": 60})
        request.configuration.return_immediately = True
        begun = await task_of(client, request)
        assert state(begun) in ("SUBMITTED", "WORKING")
        with pytest.raises(UnsupportedOperationError):
            await task_of(client, says(data={"delay": 1}, task=begun))
        assert state(await client.cancel_task(CancelTaskRequest(id=begun.id))) == "CANCELED"

        async def is_canceled() -> bool:
            return state(await client.get_task(GetTaskRequest(id=begun.id))) == "CANCELED"

        await until(is_canceled, "the task goes on")
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=begun.id))


@pytest.mark.parametrize("version", VERSIONS)
async def test_client_subscribes_to_a_working_task_until_its_end(
    server: ServerProcess, tmp_path: Path, version: str
) -> None:
    gates = Gates(tmp_path)
    async with agent(server.url, "slow", version=version, streaming=True) as client:
        request = says(data=gates.input("x"))
        request.configuration.return_immediately = True
        begun = (await anext(client.send_message(request))).task
        await gates.reached("a")
        following = client.subscribe(SubscribeToTaskRequest(id=begun.id))
        assert (await anext(following)).task.id == begun.id
        gates.open()
        rest = [event async for event in following]
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        assert rest[-2].artifact_update.artifact.parts
        with pytest.raises(UnsupportedOperationError):
            await anext(client.subscribe(SubscribeToTaskRequest(id=begun.id)))


async def test_tasks_of_a_context_are_listed_newest_first(server: ServerProcess) -> None:
    async with agent(server.url, "chat") as client:
        first = await task_of(client, says("one"))
        second = await task_of(client, says("two", context_id=first.context_id))
        listed = await client.list_tasks(ListTasksRequest(context_id=first.context_id, page_size=1))
        assert ([task.id for task in listed.tasks], listed.total_size) == ([second.id], 2)
        assert not listed.tasks[0].artifacts
        token = listed.next_page_token
        rest = await client.list_tasks(
            ListTasksRequest(context_id=first.context_id, page_token=token, include_artifacts=True)
        )
        assert [(task.id, text(task).strip()) for task in rest.tasks] == [(first.id, "you said: one")]
        failed = TaskState.TASK_STATE_FAILED
        none = await client.list_tasks(ListTasksRequest(context_id=first.context_id, status=failed))
        assert (list(none.tasks), none.next_page_token) == ([], "")
        assert not (await client.list_tasks(ListTasksRequest(context_id=str(uuid4())))).tasks
        with pytest.raises(InvalidParamsError, match="contextId"):
            await client.list_tasks(ListTasksRequest())


async def test_push_notifications_are_refused_by_their_own_error(server: ServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        for method in ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"):
            refused = await http.post("/a2a/chat", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
            assert refused.json()["error"]["code"] == -32003
    wanted = TaskPushNotificationConfig(url="https://hooks.example/a")
    async with agent(server.url, "chat") as client:
        task = await task_of(client, says("hi"))
        wanted.task_id = task.id
        with pytest.raises(PushNotificationNotSupportedError):
            await client.create_task_push_notification_config(wanted)
        with pytest.raises(PushNotificationNotSupportedError):
            await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task.id))


async def test_waiting_task_is_canceled(server: ServerProcess) -> None:
    async with agent(server.url, "twice") as client:
        asked = await task_of(client, says(data={"text": "x"}))
        assert state(await client.cancel_task(CancelTaskRequest(id=asked.id))) == "CANCELED"
        assert state(await client.get_task(GetTaskRequest(id=asked.id))) == "CANCELED"
        with pytest.raises(UnsupportedOperationError):
            await task_of(client, says("one", task=asked))


async def test_what_does_not_fit_is_an_error_of_the_protocol(server: ServerProcess) -> None:
    async with agent(server.url, "twice") as client, agent(server.url, "echo") as other:
        with pytest.raises(InvalidParamsError, match="does not support A2A conversational messages"):
            await task_of(client, says("text without messages"))
        with pytest.raises(InvalidParamsError, match="not a UUID"):
            await task_of(client, says(data={"text": "x"}, context_id="mine"))
        asked = await task_of(client, says(data={"text": "x"}))
        for wrong in (f"{asked.context_id}:{uuid4()}", f"{uuid4()}:{asked.id.rpartition(':')[2]}", "nothing"):
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id=wrong))
        with pytest.raises(TaskNotFoundError):  # a task of another agent
            await other.get_task(GetTaskRequest(id=asked.id))


async def test_json_rpc_errors_and_cards(server: ServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.post("/a2a/chat", content="{", headers={"content-type": "application/json"})).json()[
            "error"
        ]["code"] == -32700
        assert (await http.post("/a2a/chat", json=[])).json()["error"]["code"] == -32600
        assert (await http.post("/a2a/chat", json={"jsonrpc": "2.0", "id": 1})).json()["error"]["code"] == -32600
        unknown = {"jsonrpc": "2.0", "id": 1, "method": "tasks/nope"}
        assert (await http.post("/a2a/chat", json=unknown)).json()["error"]["code"] == -32601
        missing = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}
        assert (await http.post("/a2a/chat", json=missing)).json()["error"]["code"] == -32602
        nobody = await http.post(f"/a2a/{uuid4()}", json={**unknown, "method": "tasks/get"})
        assert "not found" in nobody.json()["error"]["message"]
        assert (await http.get("/.well-known/agent-card.json")).status_code == 400
        card = (await http.get("/.well-known/agent-card.json?assistant_id=chat")).json()
        assert card == (await http.get(card["url"] + "/.well-known/agent-card.json")).json()
        assert card["url"].startswith(f"{server.url}/a2a/")
        assert card["skills"][0]["metadata"]["inputSchema"]["supportsA2A"] is True


class Gated(NamedTuple):
    server: ServerProcess
    folder: Path
    keys: dict[str, str]


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    folder = tmp_path_factory.mktemp("gated")
    database = f"sqlite:///{folder}/assent.db"
    keys = make_keys(database, "ana", "ben")
    with running(dev_server(database, config=GATED, ASSENT_SECRET_KEY=SECRET)) as server:
        yield Gated(server, folder, keys)


@pytest.mark.promise("P6")
async def test_gated_task_completes_after_a_person_decided(gated: Gated) -> None:
    server, folder, keys = gated
    log = folder / "effects"
    async with agent(server.url, "gated") as client:
        request = script({"log": str(log), "tag": "once"})["messages"][0]["content"]
        asked = await task_of(client, says(request))
        [question] = data(asked)
        assert (state(asked), question["gated"]) == ("INPUT_REQUIRED", True)
        for answer in ({"type": "approve"}, {question["id"]: {"type": "approve"}}):
            with pytest.raises(InvalidParamsError):
                await task_of(client, says(data={"resume": answer}, task=asked))
        with pytest.raises(InvalidParamsError):
            await task_of(client, says("approve", task=asked))
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=asked.id))
        assert not log.exists()
        async with httpx.AsyncClient(base_url=server.url, headers={"x-api-key": keys["ana"]}) as ana:
            listed = await ana.get("/api/inbox/items", params={"filter": f"thread:{asked.context_id}"})
            [item] = listed.json()["items"]
            verdict = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
            assert (await ana.post(f"/api/inbox/items/{item['id']}/decision", json=verdict)).status_code == 200

        async def is_done() -> bool:
            return state(await client.get_task(GetTaskRequest(id=asked.id))) == "COMPLETED"

        await until(is_done, "the task of the approved call is not completed")
        done = await client.get_task(GetTaskRequest(id=asked.id))
    assert "did once" in text(done)
    assert log.read_text() == "once\n"
