"""Policies as people read them: a rule in words, what another version changed, and what is wrong with a text."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.domain import durations
from assent.domain.policies import Deciders, Effect, Policy, Rule
from assent.domain.policy_text import to_toml
from assent.store.policies import Version
from assent.web.language import gettext as _
from assent.web.language import ngettext
from assent.web.words import Sign

EFFECTS = {
    Effect.ALLOW: Sign("check", "Runs freely", "good"),
    Effect.ASK: Sign("dot", "Asks a person", "needs"),
    Effect.NEVER: Sign("cross", "Never runs", "bad"),
    Effect.ADVISE: Sign("reply", "Asks, not guarded"),
}
_RULE = re.compile(r"rules\[(\d+)\](?:\.(.*))?")
_AROUND = 3


@dataclass(frozen=True, slots=True)
class RuleView:
    """`number` is its place from 1 on; 0 is what holds for whatever no rule names."""

    number: int
    rule: Rule

    @property
    def effect(self) -> Sign:
        return EFFECTS[self.rule.then]

    @property
    def asks(self) -> bool:
        return self.rule.then in (Effect.ASK, Effect.ADVISE)

    @property
    def matches(self) -> list[tuple[str, str]]:
        named = [(_("tool"), self.rule.tool), (_("graph"), self.rule.graph), (_("agent"), self.rule.agent)]
        given = [(name, glob) for name, glob in (*named, (_("tenant"), self.rule.tenant)) if glob != "*"]
        return [*given, *([(_("when"), self.rule.when)] if self.rule.when else [])]

    @property
    def who(self) -> list[str]:
        others = [_("not who started or edited it")] if self.rule.separate_duties else []
        return [*(named(self.rule.by) or [_("whoever may decide")]), *others]

    @property
    def deadline(self) -> list[str]:
        rule, lengths = self.rule, []
        if rule.remind_after:
            lengths.append(_("reminder after %s") % durations.text(rule.remind_after))
        schedule = rule.schedule
        if schedule.escalate:
            to = ", ".join(named(rule.escalate_to))
            lengths.append(_("after %(time)s to %(who)s") % {"time": durations.text(schedule.escalate), "who": to})
        if schedule.expire:
            lengths.append(_("expires after %s") % durations.text(schedule.expire))
        return lengths


@dataclass(frozen=True, slots=True)
class VersionView:
    version: Version
    changes: list[tuple[str, str]]
    """Lines of the difference to the version before, each with its kind: add, cut, at, or nothing."""


@dataclass(frozen=True, slots=True)
class Fault:
    where: str
    field: str
    message: str


def rules(policy: Policy) -> list[RuleView]:
    return [*(RuleView(number, rule) for number, rule in enumerate(policy.rules, 1)), RuleView(0, policy.default)]


def named(deciders: Deciders) -> list[str]:
    roles = [_("role %s") % role for role in deciders.roles]
    return [*roles, *(_("group %s") % group for group in deciders.groups), *deciders.people]


def with_changes(versions: Sequence[Version], before: Version | None) -> list[VersionView]:
    """Newest first, each compared with the next one; `before` stands behind the last."""
    older = [*versions, before][1:]
    return [VersionView(one, changes(two, one) if two else []) for one, two in zip(versions, older, strict=True)]


def changes(before: Version, after: Version) -> list[tuple[str, str]]:
    old, new = (to_toml(_mapping(version)).splitlines() for version in (before, after))
    lines = difflib.unified_diff(old, new, lineterm="", n=_AROUND)
    return [(_kind(line), line) for line in lines if not line.startswith(("---", "+++"))]


def faults(text: str, errors: Sequence[Mapping[str, Any]]) -> list[Fault]:
    """What stands against a text, by the rule's number and name and by the field."""
    return list(_faults(_names(text), errors))


def _faults(names: Sequence[str], errors: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    for error in errors:
        path, message = str(error["path"]), str(error["message"])
        found = _RULE.fullmatch(path)
        if found is None:
            yield Fault("", path, message)
            continue
        number = int(found[1])
        name = names[number] if number < len(names) else ""
        where = _("Rule %s") % (number + 1)
        yield Fault(f"{where} “{name}”" if name else where, found[2] or "", message)


def _names(text: str) -> list[str]:
    try:
        found = tomllib.loads(text).get("rules")
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    listed = found if isinstance(found, list) else []
    return [str(rule.get("name", "")) if isinstance(rule, dict) else "" for rule in listed]


def _mapping(version: Version) -> Mapping[str, Any]:
    assert isinstance(version.policy, dict)
    return version.policy


def _kind(line: str) -> str:
    return {"+": "add", "-": "cut", "@": "at"}.get(line[:1], "")


def people_needed(rule: Rule) -> str:
    return ngettext("%s person", "%s people", rule.approvals) % rule.approvals
