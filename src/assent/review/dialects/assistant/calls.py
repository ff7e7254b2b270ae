"""Shared parts of the assistant's two dialects: a `kind`, a list of entries, and a `call_id` for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assent.review.dialects import raw
from assent.review.dialects.fields import Fields, repeated
from assent.review.model.questions import Action, Interrupt, ItemType, Question


def recognise(
    interrupt: Interrupt,
    kind: str,
    asked: str,
    item_type: ItemType,
    read: Callable[[str, Fields], Action],
    title: Callable[[tuple[Action, ...]], str],
) -> Question | None:
    """The question whose actions are in the list `asked`, each parsed by `read`."""
    if not isinstance(interrupt.value, dict) or interrupt.value.get("kind") != kind:
        return None
    fields = Fields(interrupt.value)
    entries = fields.each(asked)
    actions = tuple(read(str(index), part) for index, part in enumerate(entries))
    twice = repeated(action.call_id for action in actions)
    for part, action in zip(entries, actions, strict=True):
        if action.call_id in twice:
            part.fault("call_id", "is not unique")
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    description = actions[0].description if len(actions) == 1 else None
    return Question(kind, item_type, title(actions), description, actions, (), interrupt)


def keys(question: Question) -> Mapping[str | None, str]:
    return {action.call_id: action.key for action in question.actions}


def key(entry: Fields, known: Mapping[str | None, str]) -> str:
    """The key of the action that this entry answers; an unknown id is kept, to be refused later."""
    call_id = entry.text("call_id")
    return known.get(call_id, f"call_id {call_id}")
