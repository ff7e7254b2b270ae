"""`assent chat` at a real server: what it shows, what it asks, and that a talk goes on where it was left."""

import io
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.assistant.calendars import served
from tests.assistant.library import library
from tests.cli.command import PATIENCE, Result, environment
from tests.cli.conftest import Assent
from tests.servers import ServerProcess, running
from tests.waiting import wait_until

GRAPHS = Path(__file__).parents[1] / "graphs_assistant" / "langgraph.json"


def serving(folder: Path, mode: str, **more: str) -> ServerProcess:
    database = f"sqlite:///{folder / 'chat.db'}"
    command = [sys.executable, "-m", "assent", mode, "--port", "0", "--database", database]
    return ServerProcess(command, {"ASSENT_CONFIG": str(GRAPHS), "ASSENT_ASSISTANT": "scripted", **more})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with (
        served(library().http_app(path="/mcp")) as url,
        running(serving(tmp_path_factory.mktemp("chat"), "demo", ASSISTANT_MCP_URL=f"{url}/mcp")) as server,
    ):
        server.printed("reviewer key")
        yield server


@dataclass
class Terminal:
    """Someone who types these lines, one after the other, and then nothing more."""

    assent: Assent
    monkeypatch: pytest.MonkeyPatch
    server: ServerProcess
    thread: str

    def __call__(self, *lines: str, options: tuple[str, ...] = ()) -> Result:
        self.monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return self.assent("chat", "--url", self.server.url, "--thread", self.thread, *options)


@pytest.fixture
def chat(server: ServerProcess, assent: Assent, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(assent, monkeypatch, server, f"talk {uuid4()}")


@pytest.mark.promise("ASST-38")
def test_request_is_answered_and_the_continue_command_shown(chat: Terminal) -> None:
    result = chat("hello", "", "/quit")
    assert (result.code, result.err) == (0, "")
    assert "This thread has no messages yet." in result.out
    assert "assistant:\n  | Done: nothing.\n" in result.out
    assert f"To continue later: assent chat --url {chat.server.url} --thread '{chat.thread}'" in result.out


@pytest.mark.promise("ASST-38")
def test_calls_are_tables_that_are_approved_or_rejected_with_a_reason(chat: Terminal) -> None:
    result = chat("confirm", "what?", "a", "r", "", "too late")
    assert "wants to make 2 calls" in result.out
    assert '    argument  value\n    minutes   30\n    name      "Standup"\n' in result.out
    assert "\u202e" not in result.out
    assert '"Lunch\\u202e"' in result.out
    assert "approve, edit, reject; or /quit" in result.out
    assert "a value is required" in result.out
    assert "  | Done: {'name': 'Standup', 'minutes': 30}; not done: too late." in result.out


@pytest.mark.promise("HITL-24")
def test_a_call_is_edited(chat: Terminal) -> None:
    result = chat("confirm", "e", "minutes=45", "nonsense", "", "e", "")
    assert "    minutes: 30 → 45" in result.out
    assert "plan again" in result.out
    assert "write it as name=value" in result.out
    assert "Done: {'name': 'Standup', 'minutes': 45}; {'name': 'Lunch\\u202e', 'minutes': 60}." in result.out


@pytest.mark.promise("ASST-38")
def test_questions_are_asked_one_by_one(chat: Terminal) -> None:
    result = chat("ask", "", "tomorrow", "room 2")
    assert "The assistant asks:\n  | When?\n  about:\n  | a day and a time\n" in result.out
    assert "  | Done: tomorrow; room 2." in result.out


@pytest.mark.promise("ASST-38")
@pytest.mark.parametrize(("said", "heard"), [("", "accept"), ("done", "accept"), ("decline", "decline")])
def test_a_login_shows_the_whole_host(chat: Terminal, said: str, heard: str) -> None:
    result = chat("login", said)
    assert "  | Connect your calendar\n  host  accounts.example.com:8443\n" in result.out
    assert "  link  https://accounts.example.com:8443/connect?state=1\n" in result.out
    assert f"Done: {{'action': '{heard}'}}." in result.out


def test_a_form_is_filled_in_field_by_field(chat: Terminal) -> None:
    result = chat("form", "f", "", "blue", "many", "3", "maybe", "yes")
    assert '  Room (text, required, one of "blue", "green")\n' in result.out
    assert "  people (integer, required): how many come\n" in result.out
    assert "this field is required" in result.out
    assert "that is not a JSON integer" in result.out
    assert "    answer yes or no\n" in result.out
    assert "{'room': 'blue', 'people': 3, 'catering': True}" in result.out


def test_a_form_that_the_server_refuses_is_asked_again(chat: Terminal) -> None:
    result = chat("form", "f", "red", "0", "", "f", "green", "2", "")
    assert "! elicitation.content." in result.out
    assert "elicitation.content.room" in result.out
    assert "{'room': 'green', 'people': 2, 'catering': False}" in result.out


def test_a_form_is_declined(chat: Terminal) -> None:
    assert "Done: {'action': 'decline'}." in chat("form", "d").out


def test_pending_question_is_shown_again_and_continues(chat: Terminal) -> None:
    left = chat("ask confirm", "/quit")
    assert left.code == 0
    result = chat("tomorrow", "here")
    assert result.out.count("The assistant asks:") == 2
    assert "wants to make 2 calls" in result.out
    again = chat("a", "a")
    assert "wants to make 2 calls" in again.out
    assert "Done: tomorrow; here; {'name': 'Standup'" in again.out
    assert "Done: tomorrow; here;" in chat().out


def test_question_decided_by_someone_else_is_reported(chat: Terminal, server: ServerProcess) -> None:
    chat("confirm")
    headers = {"x-api-key": server.printed("reviewer key")}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as ana:
        query = {"metadata": {"assistant_thread_id": chat.thread}}
        [thread] = ana.post("/threads/search", json=query).json()
        body = ana.get("/api/inbox/items", params={"filter": f"is:pending thread:{thread['thread_id']}"}).json()
        [item] = body["items"]
        decision = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
        ana.post(f"/api/inbox/items/{item['id']}/decision", json=decision).raise_for_status()
    result = chat()
    assert "wants to make" not in result.out
    assert "Done: {'name': 'Standup'" in result.out


def test_question_for_the_inbox_shows_its_link(chat: Terminal) -> None:
    result = chat("odd")
    assert "  what do you make of this?" in result.out
    assert f"  {chat.server.url}/inbox/" in result.out
    assert "  or: assent inbox get " in result.out
    assert result.code == 0
    assert "a decision in the inbox:" in chat().out


def test_failure_is_reported_and_the_chat_continues(chat: Terminal) -> None:
    result = chat("fail", "hello")
    assert "! the assistant could not answer" in result.out
    assert "sk-do-not-tell" not in result.out
    assert "Done: nothing." in result.out


def test_failed_answer_can_be_sent_again(chat: Terminal) -> None:
    result = chat("confirm fail", "a", "a", "y", "n", "hello")
    assert result.out.count("! the assistant could not answer") == 2
    assert result.out.count("Your answer is saved. Try again? [y/n]") == 2
    assert "Done: " in result.out


def test_help_command_lists_the_chat_commands(chat: Terminal) -> None:
    assert "leave; pending questions stay open" in chat("/help", "/what").out


@pytest.mark.promise("ASST-38")
def test_prompts_of_servers_are_listed_shown_and_sent(chat: Terminal) -> None:
    result = chat("/prompts", "/prompt recommend mood='not sad'", "", "the sea", "y")
    assert "  recommend topic=… [mood=…]\n    Ask for a book.\n" in result.out
    assert "a value is required" in result.out
    assert "The prompt:\n  | Recommend a book about the sea; mood: not sad.\n" in result.out
    assert "assistant:\n" in result.out.partition("Send it?")[2]


def test_prompt_that_is_declined_or_wrong_is_not_sent(chat: Terminal) -> None:
    result = chat("/prompt greet", "n", "/prompt", "/prompt greet now", "/prompt none", "/prompt greet a=b")
    assert "assistant:\n" not in result.out
    assert "! write /prompt NAME name=value …" in result.out
    assert "! now: write arguments as name=value" in result.out
    assert "! no server has a prompt 'none'" in result.out
    assert "! arguments.a: is not an argument of this prompt" in result.out


def test_new_chat_gets_its_own_thread(chat: Terminal) -> None:
    chat.monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    result = chat.assent("chat", "--url", chat.server.url)
    assert "thread chat-" in result.out
    assert "Done: nothing." in result.out


def test_chat_works_as_a_process_in_a_pipe(server: ServerProcess, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "assent", "chat", "--thread", f"{uuid4()}"],
        cwd=tmp_path,
        env=environment(ASSENT_URL=server.url),
        input="confirm\na\na\n/quit\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "you> confirm\n" in done.stdout
    assert "Done: {'name': 'Standup', 'minutes': 30}" in done.stdout


def test_caller_who_is_no_person_cannot_decide(assent: Assent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with running(serving(tmp_path, "dev")) as server:
        key = server.printed("reviewer key")
        chat = Terminal(assent, monkeypatch, server, "t")
        refused = chat("confirm", "a", "a")
        assert (refused.code, "may not decide" in refused.err) == (4, True)
        assert "Done: {'name': 'Standup'" in chat("a", "a", options=("--key", key)).out


def test_server_without_an_assistant_exits_with_error(
    assent: Assent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with running(serving(tmp_path, "dev", ASSENT_ASSISTANT="")) as server:
        result = Terminal(assent, monkeypatch, server, "t")("hello")
        assert result.code == 5
        assert "the setting assistant" in result.err


def test_unreachable_server_exits_with_error(assent: Assent) -> None:
    result = assent("chat", "--url", "http://127.0.0.1:9", "--thread", "t")
    assert (result.code, "does not answer" in result.err) == (7, True)


def test_invalid_key_exits_with_error(chat: Terminal) -> None:
    assert chat("hello", options=("--key", "asnt_reviewer_wrong")).code == 4
    assert chat("hello", options=("--key", "ключ")).code == 2


def test_busy_thread_is_waited_for(chat: Terminal, tmp_path: Path) -> None:
    gate = tmp_path / "open"
    body = {"thread_id": chat.thread, "user_request": f"slow:{gate}"}
    with httpx.Client(base_url=chat.server.url, trust_env=False) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/run", json=body, timeout=0.5)
        query = {"metadata": {"assistant_thread_id": chat.thread}, "status": "busy"}
        wait_until(lambda: client.post("/threads/search", json=query).json(), "it never ran")
    chat.monkeypatch.setattr("assent.assistant.cli.chat.time.sleep", lambda seconds: gate.touch())
    result = chat()
    assert "The assistant is still working" in result.out
    assert "Done: nothing." in result.out
