"""Examples that ask: the code of a page is the node of a real graph, and the answers that the page tells resume it."""

from __future__ import annotations

import ast
import re
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from assent.errors import InvalidDecision
from assent.review.dialects import registry
from assent.review.model.questions import Interrupt, Question
from tests.docs.documents import Block

_CONFIG: Any = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    done: bool


def check(block: Block, names: dict[str, Any]) -> None:
    """Each question is of the dialect that the heading names, and takes the answers that the page tells."""
    answers = told_answers(block)
    questions = _asked(block, names, answers)
    assert questions
    for question in questions:
        assert f"`{question.dialect}`" in block.section, f"{block.page}:{block.line} asks in {question.dialect}"
        assert not question.problems
    for answer in answers:
        assert any(_fits(question, answer) for question in questions), f"{block.page}:{block.line} tells {answer}"


def told_answers(block: Block) -> list[Any]:
    """The values in the comments of a block, which are the answers to what it asks."""
    comments = "\n".join(re.findall(r"#(.*)$", block.text, re.MULTILINE))
    return [ast.literal_eval(document) for document in _objects(comments)]


def _objects(text: str) -> list[str]:
    found, depth, start = [], 0, 0
    for place, character in enumerate(text):
        if character == "{":
            start, depth = (place if depth == 0 else start), depth + 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                found.append(text[start : place + 1])
    return found


def _asked(block: Block, names: dict[str, Any], answers: list[Any]) -> list[Question]:
    def node(state: State) -> State:
        exec(compile(block.text, block.page, "exec"), dict(names))  # noqa: S102 - our own documentation
        return {"done": True}

    graph = StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile(InMemorySaver())
    questions: list[Question] = []
    result = graph.invoke({}, _CONFIG)
    while interrupts := result.get("__interrupt__"):
        question = registry.recognise(Interrupt(interrupts[0].id, interrupts[0].value))
        questions.append(question)
        answer = next((answer for answer in answers if _fits(question, answer)), [{"type": "ignore", "args": None}])
        result = graph.invoke(Command(resume={interrupts[0].id: answer}), _CONFIG)
    assert result["done"]
    return questions


def _fits(question: Question, answer: Any) -> bool:
    try:
        return bool(registry.decode(question, answer).value == answer)
    except InvalidDecision:
        return False
