"""The conditions of `identity.model.visibility` as SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Table, and_, false, or_, true

from assent.identity.model.visibility import AllOf, Has, OneOf, OpenTo, Visible
from assent.kernel.store.containment import contains


def is_visible(
    table: Table, visible: Visible, dialect: str, document: ColumnElement[Any] | None = None
) -> ColumnElement[bool]:
    """`document`: the JSON column that filters are about; the metadata by default."""
    about = table.c.metadata if document is None else document
    if isinstance(visible, AllOf):
        return and_(true(), *(is_visible(table, part, dialect, about) for part in visible.parts))
    if isinstance(visible, OneOf):
        return or_(false(), *(is_visible(table, part, dialect, about) for part in visible.parts))
    if isinstance(visible, OpenTo):
        return or_(table.c.owner.is_(None), table.c.owner == visible.actor, table.c.visibility == "shared")
    wanted = visible.value if isinstance(visible, Has) else list(visible.values)
    return contains(about, {visible.key: wanted}, dialect)
