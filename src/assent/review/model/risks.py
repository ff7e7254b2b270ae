"""The risk of each action, with the reasons: a rule of the policy rates the call, or its arguments give a caution.

The risk of an item is the highest of its actions. Ratings are stored with the item's terms, so that a list shows them
without the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assent.review.model.calls.cautions import Caution
from assent.review.model.calls.kinds import cautions_of
from assent.review.model.policies import Risk, Rule
from assent.review.model.questions import Action, ItemType, Question, headline

_RISKS = tuple(Risk)
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Reason:
    """Either the name of a rule, or the text of a caution."""

    risk: Risk
    rule: str | None = None
    caution: str | None = None

    def to_json(self) -> dict[str, str]:
        source = {"rule": self.rule} if self.rule is not None else {"caution": self.caution or ""}
        return {"risk": self.risk.value, **source}


@dataclass(frozen=True, slots=True)
class Rating:
    """The risk of the action with this key; `name` is its tool."""

    action: str
    name: str
    reasons: tuple[Reason, ...] = ()

    @property
    def risk(self) -> Risk | None:
        return highest(reason.risk for reason in self.reasons)

    def to_json(self) -> dict[str, Any]:
        return {"action": self.action, "name": self.name, "reasons": [reason.to_json() for reason in self.reasons]}


def highest(risks: Iterable[Risk | None]) -> Risk | None:
    return max((risk for risk in risks if risk is not None), key=_RISKS.index, default=None)


def rated(question: Question, rules: Sequence[Rule]) -> tuple[Rating, ...]:
    """The ratings of the actions that have a risk; `rules` has the deciding rule of each action."""
    pairs = zip(question.actions, rules, strict=True)
    return _ratings(question, ((action, (rule,)) for action, rule in pairs))


def rated_by_name(question: Question, rules: Sequence[Rule]) -> tuple[Rating, ...]:
    """For items from before ratings were stored: every rule counts whose pattern fits the tool."""
    pairs = ((action, tuple(rule for rule in rules if rule.names(action.name))) for action in question.actions)
    return _ratings(question, pairs)


def merged(before: Iterable[Rating], now: Iterable[Rating]) -> tuple[Rating, ...]:
    """The ratings after a change of the question: the rules that rated an action before still rate it, also if it is
    gone; its cautions are those of the arguments now."""
    ratings = {rating.action: rating for rating in now}
    for rating in before:
        rules = tuple(reason for reason in rating.reasons if reason.rule is not None)
        current = ratings.get(rating.action, replace(rating, reasons=()))
        if rules:
            ratings[rating.action] = replace(current, reasons=_ordered((*current.reasons, *rules)))
    return tuple(ratings.values())


def from_json(stored: Iterable[Mapping[str, Any]]) -> tuple[Rating, ...]:
    return tuple(Rating(rating["action"], rating["name"], tuple(map(_reason, rating["reasons"]))) for rating in stored)


def _reason(stored: Mapping[str, str]) -> Reason:
    return Reason(Risk(stored["risk"]), stored.get("rule"), stored.get("caution"))


def _ratings(question: Question, judged: Iterable[tuple[Action, tuple[Rule, ...]]]) -> tuple[Rating, ...]:
    acts = question.type is not ItemType.QUESTION
    ratings = (
        _rating(action, rules, cautions_of(action.name, action.args) if acts else ()) for action, rules in judged
    )
    return tuple(rating for rating in ratings if rating.reasons)


def _rating(action: Action, rules: Iterable[Rule], cautions: Iterable[Caution]) -> Rating:
    reasons = [Reason(rule.risk, rule=rule.name) for rule in rules if rule.risk]
    reasons += [Reason(caution.risk, caution=caution.text) for caution in cautions if caution.risk]
    name = headline(action.name, "", _LONGEST_NAME).replace("\0", "\N{SYMBOL FOR NULL}")
    return Rating(action.key, name, _ordered(reasons))


def _ordered(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(dict.fromkeys(reasons), key=lambda reason: -_RISKS.index(reason.risk)))
