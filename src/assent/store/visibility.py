"""The same condition on rows as `domain.visibility`, as SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, false, or_, true

from assent.domain.visibility import AllOf, Has, OneOf, Visible
from assent.store.containment import contains


def is_visible(metadata: ColumnElement[Any], visible: Visible, dialect: str) -> ColumnElement[bool]:
    if isinstance(visible, AllOf):
        return and_(true(), *(is_visible(metadata, part, dialect) for part in visible.parts))
    if isinstance(visible, OneOf):
        return or_(false(), *(is_visible(metadata, part, dialect) for part in visible.parts))
    wanted = visible.value if isinstance(visible, Has) else list(visible.values)
    return contains(metadata, {visible.key: wanted}, dialect)
