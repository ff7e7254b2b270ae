"""Forms and logins: the assistant's, MCP's, and any interrupt that says which answers it takes."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

import pytest
from fastmcp import Context, FastMCP
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitRequestURLParams, InputRequiredResult
from typing_extensions import TypedDict

from assent.errors import InvalidAnswer, InvalidDecision, Problem
from assent.review import dialects
from assent.review.model.questions import Interrupt, ItemType, Question, Verb, Verdict
from tests.unit.dialects.pausing import CONFIG, Asking, Scripted

SCHEMA = {
    "type": "object",
    "properties": {"seats": {"type": "integer", "minimum": 1}, "mail": {"type": "string", "format": "email"}},
    "required": ["seats"],
}
FORM = {"kind": "form_elicitation", "message": "How many?\nSeats, that is", "schema": SCHEMA}
LOGIN = {
    "kind": "oauth_url",
    "url": "https://login.example.org:8443/auth?x=1",
    "message": "Please",
    "elicitation_id": "e",
}
MCP = {
    "type": "mcp_elicitation",
    "tool_name": "book",
    "requests": [
        {"key": "seats", "message": "How many?", "mode": "form", "requested_schema": SCHEMA},
        {"key": "pay now", "message": "Pay here", "mode": "url", "url": "https://pay.example.org/1"},
    ],
}


def recognise(value: Any, schema: Any = None) -> Question:
    return dialects.recognise(Interrupt("i", value, schema))


def test_a_form_is_filled_in_declined_or_cancelled() -> None:
    question = recognise(FORM)
    assert (question.dialect, question.type, question.title) == ("form_elicitation", ItemType.FORM, "How many?")
    assert question.actions[0].schema == SCHEMA
    for verdict, sent in [
        (Verdict("0", Verb.ACCEPT, args={"seats": 2}), {"action": "accept", "content": {"seats": 2}}),
        (Verdict("0", Verb.DECLINE), {"action": "decline"}),
        (Verdict("0", Verb.CANCEL), {"action": "cancel"}),
    ]:
        asking = Asking(FORM)
        asking.decide(verdict)
        assert asking.received == sent
        assert dialects.decode(question, sent).verdicts == (verdict,)


@pytest.mark.parametrize(
    ("verdict", "path", "message"),
    [
        (Verdict("0", Verb.ACCEPT), "actions[0].args", "is required to accept"),
        (Verdict("0", Verb.ACCEPT, args={}), "actions[0].args.seats", "is required"),
        (Verdict("0", Verb.ACCEPT, args={"seats": 0}), "actions[0].args.seats", "must be at least 1"),
        (Verdict("0", Verb.ACCEPT, args={"seats": "2"}), "actions[0].args.seats", "must be integer"),
        (Verdict("0", Verb.ACCEPT, args={"seats": 1, "mail": "x"}), "actions[0].args.mail", "is not a valid email"),
        (Verdict("0", Verb.ACCEPT, args=[2]), "actions[0].args", "must be an object"),
        (Verdict("0", Verb.DECLINE, args={"seats": 2}), "actions[0].args", "is not allowed with decline"),
        (Verdict("0", Verb.DECLINE, message="no"), "actions[0].message", "is not allowed with decline"),
        (Verdict("0", Verb.APPROVE), "actions[0].verb", "approve is not allowed here, only accept, decline, cancel"),
    ],
)
def test_other_decisions_on_a_form_are_refused(verdict: Verdict, path: str, message: str) -> None:
    with pytest.raises(InvalidDecision) as refused:
        dialects.encode(recognise(FORM), [verdict])
    assert refused.value.problems == (Problem(path, message),)


def test_form_error_does_not_repeat_the_submitted_values() -> None:
    schema = {"properties": {"pin": {"type": "string", "format": "password", "maxLength": 4, "pattern": "^[0-9]+$"}}}
    with pytest.raises(InvalidDecision) as refused:
        dialects.encode(recognise({**FORM, "schema": schema}), [Verdict("0", Verb.ACCEPT, args={"pin": "hunter2"})])
    assert "hunter2" not in str(refused.value)


def test_a_login_shows_its_host_and_is_done_or_declined() -> None:
    question = recognise(LOGIN)
    assert (question.type, question.title) == (ItemType.OAUTH, "Sign in at login.example.org")
    assert question.actions[0].args == {"url": LOGIN["url"]}
    for verb, sent in [(Verb.ACCEPT, {"action": "accept"}), (Verb.DECLINE, {"action": "decline"})]:
        asking = Asking(LOGIN)
        asking.decide(Verdict("0", verb))
        assert asking.received == sent
        assert dialects.decode(question, sent).verdicts == (Verdict("0", verb),)
    assert dialects.negative(question, "expired") == (Verdict("0", Verb.DECLINE),)
    with pytest.raises(InvalidDecision, match="args: is not allowed"):
        dialects.encode(question, [Verdict("0", Verb.ACCEPT, args={"token": "x"})])


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "https://bank.example@evil.example/",
        "https://evil.example\\@bank.example/",
        "https://evil.example /",
        "https://bаnk.example/",
        "https://evil.example/\n",
        "https:///x",
        "",
        7,
    ],
)
def test_login_with_an_unsafe_url_is_shown_raw_without_a_link(url: Any) -> None:
    question = recognise({**LOGIN, "url": url})
    assert question.dialect == "raw"
    assert [problem.path for problem in question.problems] == ["url"]


class Booking(TypedDict):
    seats: int
    class_: NotRequired[Literal["first", "second"]]


def test_a_value_with_a_response_schema_takes_the_bare_value() -> None:
    asking = Asking({"question": "Which booking?", "trip": 7}, Booking)
    question = asking.question
    assert (question.dialect, question.type, question.title) == ("form_elicitation", ItemType.FORM, "Which booking?")
    assert question.actions[0].allowed == (Verb.ACCEPT,)
    assert question.actions[0].args == {"question": "Which booking?", "trip": 7}
    for args, path in [({"seats": "many"}, "seats"), ({"seats": 1, "class_": "third"}, "class_"), ({}, "seats")]:
        with pytest.raises(InvalidDecision) as refused:
            asking.decide(Verdict("0", Verb.ACCEPT, args=args))
        assert [problem.path for problem in refused.value.problems] == [f"actions[0].args.{path}"]
        with pytest.raises(InvalidAnswer):
            asking.answer(args or {asking.interrupts[0].id: {}})
    asking.decide(Verdict("0", Verb.ACCEPT, args={"seats": 2}))
    assert asking.received == {"seats": 2}
    assert dialects.negative(question, "expired") is None


@pytest.mark.parametrize("value", ["x", 5, 0, False, [1], {"a": 1}, {}])
def test_a_bare_value_may_be_any_json_that_fits(value: Any) -> None:
    asking = Asking("?", {"description": "anything"})
    asking.answer({asking.interrupts[0].id: value}, gated=[asking.interrupts[0].id])
    assert asking.received == value


def test_unenforceable_schema_is_reported_and_checks_nothing() -> None:
    question = recognise("?", {"type": "strange"})
    assert question.problems[0].path == "response_schema"
    assert dialects.encode(question, [Verdict("0", Verb.ACCEPT, args="x")]) == "x"
    assert recognise("?", "no schema").problems[0].path == "response_schema"
    assert recognise("?", {"default": object()}).dialect == "raw"


def test_every_dialect_s_answer_must_fit_the_response_schema() -> None:
    schema = {"properties": {"action": {"const": "decline"}}}
    question = recognise(FORM, schema)
    assert dialects.encode(question, [Verdict("0", Verb.DECLINE)]) == {"action": "decline"}
    with pytest.raises(InvalidDecision, match='action: must be "decline"'):
        dialects.encode(question, [Verdict("0", Verb.ACCEPT, args={"seats": 1})])


def test_an_mcp_round_holds_forms_and_links() -> None:
    question = recognise(MCP)
    assert (question.dialect, question.type, question.title) == ("mcp_elicitation", ItemType.FORM, "book")
    assert [(action.call_id, action.args) for action in question.actions] == [
        ("seats", {}),
        ("pay now", {"url": "https://pay.example.org/1"}),
    ]
    verdicts = (Verdict("0", Verb.ACCEPT, args={"seats": 2}), Verdict("1", Verb.ACCEPT))
    value = dialects.encode(question, verdicts)
    accepted = {"action": "accept", "content": {"seats": 2}}
    assert value == {"responses": {"seats": accepted, "pay now": {"action": "accept"}}}
    assert dialects.decode(question, value) == dialects.Decoded(verdicts, value)
    assert recognise({**MCP, "requests": MCP["requests"][1:]}).type == ItemType.OAUTH


@pytest.mark.parametrize(
    ("responses", "path"),
    [
        ({"seats": {"action": "decline"}}, 'responses["pay now"]'),
        ({"seats": {"action": "decline"}, "pay now": {"action": "approve"}}, 'responses["pay now"].action'),
        ({"seats": {"action": "accept"}, "pay now": {"action": "accept"}}, "responses.seats.content"),
        (
            {"seats": {"action": "accept", "content": {}}, "pay now": {"action": "accept"}},
            "responses.seats.content.seats",
        ),
        (
            {"seats": {"action": "accept", "content": {"seats": 1, "x": {}}}, "pay now": {"action": "accept"}},
            "responses.seats.content.x",
        ),
        (
            {"seats": {"action": "decline"}, "pay now": {"action": "accept", "content": {"a": 1}}},
            'responses["pay now"].content',
        ),
        ({"seats": {"action": "decline"}, "pay now": {"action": "accept"}, "more": {}}, "responses.more"),
        ([], "responses"),
        (None, "responses"),
    ],
)
def test_a_wrong_answer_to_an_mcp_round_is_named(responses: Any, path: str) -> None:
    with pytest.raises(InvalidDecision) as refused:
        dialects.decode(recognise(MCP), {"responses": responses})
    assert [problem.path for problem in refused.value.problems] == [path]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"kind": "form_elicitation", "message": "?"}, "schema"),
        ({"kind": "form_elicitation", "schema": {}}, "message"),
        ({"kind": "form_elicitation", "message": "?", "schema": []}, "schema"),
        ({"type": "mcp_elicitation", "tool_name": "x", "requests": []}, "requests"),
        ({"type": "mcp_elicitation", "requests": MCP["requests"]}, "tool_name"),
        ({**MCP, "requests": [{"key": "a", "message": "?", "mode": "voice"}]}, "requests[0].mode"),
        ({**MCP, "requests": [{"key": "a", "message": "?", "mode": "form"}]}, "requests[0].requested_schema"),
        ({**MCP, "requests": [{"key": "a", "message": "?", "mode": "url", "url": "ftp://x"}]}, "requests[0].url"),
        ({**MCP, "requests": [MCP["requests"][0]] * 2}, "requests[1].key"),
    ],
)
def test_a_malformed_question_is_shown_raw_with_its_problems(value: Any, path: str) -> None:
    question = recognise(value)
    assert question.dialect == "raw"
    assert path in [problem.path for problem in question.problems]


def server() -> FastMCP[Any]:
    """An MCP server whose one tool asks for a form and a visit before it works."""
    app: FastMCP[Any] = FastMCP("seats")

    @app.tool
    async def book(ctx: Context) -> str | InputRequiredResult:
        answers = ctx.input_responses
        if not answers:
            form = ElicitRequestFormParams(message="How many?", requested_schema=SCHEMA)
            link = ElicitRequestURLParams(message="Pay", url="https://pay.example.org/1", elicitation_id="e")
            return InputRequiredResult(
                input_requests={"seats": ElicitRequest(params=form), "pay": ElicitRequest(params=link)}
            )
        return " ".join(f"{key}={answers[key]!r}" for key in sorted(answers))

    return app


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_encoded_answer_is_accepted_by_the_real_mcp_adapter() -> None:
    from langchain.mcp import MCPAdapter

    call = ToolCall(name="book", args={}, id="call-0")
    model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("done")]))
    async with MCPAdapter(server()) as adapter:
        agent = create_agent(model, await adapter.list_tools(), checkpointer=InMemorySaver())
        paused = await agent.ainvoke({"messages": [HumanMessage("go")]}, CONFIG)
        [pending] = paused["__interrupt__"]
        question = dialects.recognise(Interrupt(pending.id, pending.value, pending.response_schema))
        assert (question.dialect, question.problems) == ("mcp_elicitation", ())
        value = dialects.encode(question, [Verdict("0", Verb.ACCEPT, args={"seats": 2}), Verdict("1", Verb.DECLINE)])
        done = await agent.ainvoke(Command(resume={pending.id: value}), CONFIG)
    told = str(done["messages"][-2].content)
    assert "pay=ElicitResult(" in told
    assert "action='decline'" in told
    assert "action='accept', content={'seats': 2}" in told
