"""Title templates: filled with arguments that exist, checked when a policy is written, and never with a secret."""

from typing import Any

import pytest

from assent.errors import InvalidPolicy
from assent.identity.model.access import Agent
from assent.review.dialects import recognise
from assent.review.model import policies, titles
from assent.review.model.questions import Interrupt, Question
from assent.review.model.search.terms import terms_of
from assent.review.search import item_words

ARGS = {"order_id": "4711", "amount": 249.9, "currency": "EUR", "card": {"last4": 4242}, "a.b": 1, "token": "hunter2"}


@pytest.mark.parametrize(
    ("template", "title"),
    [
        ("Refund {amount} {currency} to order {order_id}", "Refund 249.9 EUR to order 4711"),
        ("Charge card {card.last4}", "Charge card 4242"),
        ("Odd name {a.b}", "Odd name 1"),
        ("No placeholder", "No placeholder"),
        ("Unknown {nothing}", None),
        ("Too deep {order_id.x}", None),
        ("", None),
        (7, None),
    ],
)
def test_template_is_filled_or_not_used(template: object, title: str | None) -> None:
    assert titles.filled(template, ARGS) == title


@pytest.mark.parametrize(
    "template", ["Refund {amount", "Refund amount}", "Refund {}", "Refund { amount}", "{a..b}", ""]
)
def test_malformed_template_is_refused_with_rule_and_field(template: str) -> None:
    rule = {"name": "refunds", "then": "ask", "title": template}
    with pytest.raises(InvalidPolicy) as refused:
        policies.from_json({"rules": [rule]})
    assert [problem.path for problem in refused.value.problems] == ["rules[0].title"]


def words(rule: dict[str, Any], *names: str, **call: Any) -> dict[str, str]:
    policy = policies.from_json({"rules": [{"name": "r", "then": "ask", **rule}]})
    question = asked(*(names or ("refund",)), **call)
    terms = terms_of(policy, 1, question, graph="g", agent=Agent(), tenant="t")
    return item_words.words(question, terms)


def asked(*names: str, **call: Any) -> Question:
    if len(names) == 1:
        return recognise(
            Interrupt("i", {"type": "tool_approval", "name": names[0], "args": ARGS, "tool_call_id": "1", **call})
        )
    calls = [{"name": name, "args": ARGS} for name in names]
    configs = [{"action_name": name, "allowed_decisions": ["approve"]} for name in names]
    return recognise(Interrupt("i", {"action_requests": calls, "review_configs": configs}))


def test_template_of_the_policy_gives_the_title_and_keeps_the_name() -> None:
    said = words({"tool": "refund", "title": "Refund {amount} {currency}"})
    assert (said["title"], said["called"]) == ("Refund 249.9 EUR", "refund")


def test_policy_comes_before_the_tool_and_the_tool_before_the_name() -> None:
    schema = {"args_schema": {"type": "object", "x-title": "By tool {order_id}"}}
    assert words({"title": "By policy {order_id}"}, **schema)["title"] == "By policy 4711"
    assert words({"title": "Unknown {nothing}"}, **schema)["title"] == "By tool 4711"
    plain = words({"title": "Unknown {nothing}"})
    assert (plain["title"], plain["called"]) == ("refund", "")


def test_template_of_a_rule_for_another_tool_is_not_used() -> None:
    assert words({"tool": "pay", "title": "Pay"}, "refund", "pay")["title"] == "refund, pay"
    assert words({"tool": "refund", "title": "Refund {amount}"}, "refund", "pay")["title"] == "Refund 249.9 (+1)"


def test_secret_in_a_title_is_masked() -> None:
    assert words({"title": "Use {token}"})["title"] == "Use ••••••"
    assert words({"title": "Order {order_id}", "mask": ["order_id"]})["title"] == "Order ••••••"
    assert words({"title": "Use {token}", "unmask": ["token"]})["title"] == "Use hunter2", "the control"
