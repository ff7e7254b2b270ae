"""The kind of a call, and the cautions about it."""

from __future__ import annotations

import re
from collections.abc import Callable

from assent.kernel.canonical import Json
from assent.review.model.calls import commands, mails, payments, sql
from assent.review.model.calls.arguments import Args, first, mapping, text
from assent.review.model.calls.cautions import Caution

_PLANS = re.compile(r"(?i)event|meeting|appointment|calendar")
_START = ("start", "start_time", "startTime", "starts_at")
_TITLE = ("title", "summary", "name", "subject")


def _plans_event(name: str, args: Args) -> bool:
    return bool(_PLANS.search(name)) and first(args, *_START) is not None and bool(text(args, *_TITLE))


_KINDS: dict[str, Callable[[str, Args], bool]] = {
    "email_draft": mails.sends_mail,
    "calendar_event": _plans_event,
    "payment": payments.moves_money,
    "sql": sql.talks_sql,
    "shell": commands.runs_command,
    "code": commands.runs_program,
}
"""By the type that people search for. The first that recognises the call names it."""


def kind_of(name: str, args: Json) -> str | None:
    """The type of items that the call looks like; None if it looks like no known one."""
    return next((kind for kind, recognises in _KINDS.items() if recognises(name, mapping(args))), None)


def cautions_of(name: str, args: Json) -> list[Caution]:
    """Independent of the tool's name where the arguments alone can do harm."""
    given = mapping(args)
    sources = dict.fromkeys(filter(None, (commands.command(given), commands.program(given))))
    warnings = [caution for source in sources for caution in commands.cautions(source)]
    if sql.talks_sql(name, given) or text(given, "sql"):
        warnings += sql.cautions(sql.statement(given))
    if payments.moves_money(name, given):
        warnings += payments.cautions([given])
    if mails.sends_mail(name, given):
        warnings += mails.cautions(given)
    return list(dict.fromkeys(warnings))
