"""Policies for people: rules in words, differences between versions, and errors of a policy text."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.kernel import durations
from assent.review.model.policies import Deciders, Effect, Policy, Rule
from assent.review.model.policy_text import to_toml
from assent.review.model.rules.loosening import Loosening, loosenings
from assent.review.rows.policies import Version
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.language import ngettext
from assent.surfaces.web.text.words import Sign

EFFECTS = {
    Effect.ALLOW: Sign("check", "Runs freely", "good"),
    Effect.ASK: Sign("dot", "Needs approval", "needs"),
    Effect.NEVER: Sign("cross", "Never runs", "bad"),
    Effect.ADVISE: Sign("reply", "Advisory"),
}
LOOSENS = Sign("alert", "Loosens", "needs")
_RULE = re.compile(r"rules\[(\d+)\](?:\.(.*))?")
_AROUND = 3


@dataclass(frozen=True, slots=True)
class RuleView:
    """`number` is the rule's position from 1; 0 is the default."""

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
        globs = [(name, glob) for name, glob in (*named, (_("tenant"), self.rule.tenant)) if glob != "*"]
        return [*globs, *([(_("when"), self.rule.when)] if self.rule.when else [])]

    @property
    def who(self) -> list[str]:
        others = [_("not the person who started or edited it")] if self.rule.separate_duties else []
        confirmed = [_("each confirms with a passkey")] if self.rule.confirm else []
        return [*(named(self.rule.by) or [_("anyone who may decide")]), *others, *confirmed]

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
    """Diff lines against the previous version, each with its kind: add, cut, at, or empty."""

    loosened: Sequence[Loosening] = ()


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
    """Newest first, each compared with the next; `before` is the version before the last one."""
    older = [*versions, before][1:]
    return [_compared(new, old) for new, old in zip(versions, older, strict=True)]


def _compared(new: Version, old: Version | None) -> VersionView:
    if old is None:
        return VersionView(new, [])
    return VersionView(new, changes(old, new), loosenings(old.parsed(), new.parsed()))


def loosened(change: Loosening) -> str:
    """The change in the reader's language."""
    effects = {str(effect): _(sign.word) for effect, sign in EFFECTS.items()}
    before, after = (effects.get(text, text) for text in (change.before, change.after))
    return _(change.text).format(before=before, after=after)


def changes(before: Version, after: Version) -> list[tuple[str, str]]:
    old, new = (to_toml(_mapping(version)).splitlines() for version in (before, after))
    lines = difflib.unified_diff(old, new, lineterm="", n=_AROUND)
    return [(_kind(line), line) for line in lines if not line.startswith(("---", "+++"))]


def faults(text: str, errors: Sequence[Mapping[str, Any]]) -> list[Fault]:
    """The errors of a policy text, with rule number, rule name and field."""
    return list(_faults(_names(text), errors))


def _faults(names: Sequence[str], errors: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    for error in errors:
        path, message = str(error["path"]), str(error["message"])
        match = _RULE.fullmatch(path)
        if match is None:
            yield Fault("", path, message)
            continue
        number = int(match[1])
        name = names[number] if number < len(names) else ""
        where = _("Rule %s") % (number + 1)
        yield Fault(f"{where} “{name}”" if name else where, match[2] or "", message)


def _names(text: str) -> list[str]:
    try:
        rules = tomllib.loads(text).get("rules")
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    listed = rules if isinstance(rules, list) else []
    return [str(rule.get("name", "")) if isinstance(rule, dict) else "" for rule in listed]


def _mapping(version: Version) -> Mapping[str, Any]:
    assert isinstance(version.policy, dict)
    return version.policy


def _kind(line: str) -> str:
    return {"+": "add", "-": "cut", "@": "at"}.get(line[:1], "")


def people_needed(rule: Rule) -> str:
    return ngettext("%s person", "%s people", rule.approvals) % rule.approvals
