"""SQL statements, with cautions about statements that affect many rows."""

from __future__ import annotations

from assent.review.model.calls import sql as statements
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Caution, Code, Facts, Rendering
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import View, call, first, only, others

_PARAMETERS = ("parameters", "params", "values")


def talks_sql(item: View) -> bool:
    return statements.talks_sql(*call(item))


def sentence(item: View) -> str | None:
    statement = statements.statement(only(item))
    return _("Run SQL: %(statement)s") % {"statement": " ".join(statement.split())} if statement else None


@renders("sql", "sql_migration", label="SQL", icon="database", matches=talks_sql, title=sentence)
def sql(item: View) -> Rendering | None:
    args = only(item)
    statement = statements.statement(args)
    if not statement:
        return None
    facts = {"Parameters": first(args, *_PARAMETERS), **others(args, statements.TEXTS, _PARAMETERS)}
    cautions = (Caution(caution.text, caution.detail) for caution in statements.cautions(statement))
    return Rendering(*cautions, Code(statement, "SQL"), Facts(facts))
