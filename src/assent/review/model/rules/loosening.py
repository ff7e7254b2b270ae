"""The ways in which a policy is looser than the one before it: calls run that were stopped, fewer or other people are
asked, or less is masked. Where rules cannot be compared, the change counts as loosening."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from assent.review.model.policies import STRICTNESS, ByMcp, Effect, Policy, Rule

_LEVELS = list(ByMcp)
_Key = tuple[str, int]

ADDED = "is new and comes before stricter rules"
REMOVED = "is removed"
ORDER = "has moved before stricter rules"
EFFECT = "now: {after}; before: {before}"
APPROVALS = "needs {after} approvals instead of {before}"
DECIDERS = "lets other people decide"
DUTIES = "no longer separates duties"
CONFIRM = "no longer asks for a passkey"
VERBS = "offers more answers"
MATCHES = "matches other calls"
SECRETS = "masks less"
PROGRAMS = "lets programs decide at a higher risk"
TEXTS = (ADDED, REMOVED, ORDER, EFFECT, APPROVALS, DECIDERS, DUTIES, CONFIRM, VERBS, MATCHES, SECRETS, PROGRAMS)


@dataclass(frozen=True, slots=True)
class Loosening:
    """`text` is one of the texts above; `before` and `after` fill it in."""

    rule: str
    text: str
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.text.format(before=self.before, after=self.after)}"


def loosenings(before: Policy, after: Policy) -> list[Loosening]:
    old, new = _keyed(before.rules), _keyed(after.rules)
    kept = [key for key in new if key in old]
    looser = [Loosening(new[key].name, ADDED) for key in new if key not in old and _precedes_stricter(after, new, key)]
    looser += [
        Loosening(old[key].name, REMOVED) for key in old if key not in new and _precedes_looser(before, old, key)
    ]
    looser += [Loosening(new[key].name, ORDER) for key in _moved(kept, [key for key in old if key in new], new)]
    for key in kept:
        looser += _changed(old[key], new[key])
    return [*looser, *_changed(before.default, after.default)]


def _keyed(rules: Iterable[Rule]) -> dict[_Key, Rule]:
    """Names may repeat: the first of a name is compared with the first, and so on."""
    seen = Counter[str]()
    keyed = {}
    for rule in rules:
        keyed[rule.name, seen[rule.name]] = rule
        seen[rule.name] += 1
    return keyed


def _strength(rule: Rule) -> tuple[int, ...]:
    asks = (rule.approvals, bool(rule.by), rule.separate_duties, rule.confirm is not None)
    return STRICTNESS[rule.then], *(map(int, asks) if rule.then is Effect.ASK else (0,) * len(asks))


def _is_weaker(rule: Rule, other: Rule) -> bool:
    if rule.then is not other.then:
        return STRICTNESS[rule.then] < STRICTNESS[other.then]
    return any(own < others for own, others in zip(_strength(rule), _strength(other), strict=True))


def _later(policy: Policy, rules: dict[_Key, Rule], key: _Key) -> list[Rule]:
    keys = list(rules)
    return [*(rules[each] for each in keys[keys.index(key) + 1 :]), policy.default]


def _precedes_stricter(policy: Policy, rules: dict[_Key, Rule], key: _Key) -> bool:
    return any(_is_weaker(rules[key], later) for later in _later(policy, rules, key))


def _precedes_looser(policy: Policy, rules: dict[_Key, Rule], key: _Key) -> bool:
    return any(_is_weaker(later, rules[key]) for later in _later(policy, rules, key))


def _moved(now: Sequence[_Key], then: Sequence[_Key], rules: dict[_Key, Rule]) -> Iterator[_Key]:
    """The rules that come before a stricter rule that they used to follow."""
    places = {key: place for place, key in enumerate(then)}
    for index, key in enumerate(now):
        overtaken = (other for other in now[index + 1 :] if places[other] < places[key])
        if any(_is_weaker(rules[key], rules[other]) for other in overtaken):
            yield key


def _changed(old: Rule, new: Rule) -> Iterator[Loosening]:
    name = new.name
    if STRICTNESS[new.then] < STRICTNESS[old.then]:
        yield Loosening(name, EFFECT, str(old.then), str(new.then))
    if new.approvals < old.approvals:
        yield Loosening(name, APPROVALS, str(old.approvals), str(new.approvals))
    checks = {
        DECIDERS: old.by != new.by and bool(old.by),
        DUTIES: old.separate_duties and not new.separate_duties,
        CONFIRM: old.confirm is not None and new.confirm is None,
        VERBS: old.verbs is not None and (new.verbs is None or not set(new.verbs) <= set(old.verbs)),
        MATCHES: _names(old) != _names(new),
        PROGRAMS: _LEVELS.index(new.mcp) > _LEVELS.index(old.mcp),
        SECRETS: not set(old.mask) <= set(new.mask) or not set(new.unmask) <= set(old.unmask),
    }
    yield from (Loosening(name, text) for text, holds in checks.items() if holds)


def _names(rule: Rule) -> tuple[str | None, ...]:
    return rule.tool, rule.graph, rule.agent, rule.tenant, rule.when
