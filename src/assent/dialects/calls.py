"""What the assistant's two dialects share: a `kind`, a list of things asked, and a `call_id` that names each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assent.dialects import raw
from assent.dialects.fields import Fields, repeated
from assent.domain.questions import Action, Interrupt, ItemType, Question


def recognise(
    interrupt: Interrupt,
    kind: str,
    asked: str,
    item_type: ItemType,
    read: Callable[[str, Fields], Action],
    title: Callable[[tuple[Action, ...]], str],
) -> Question | None:
    """The question whose parts stand in the list `asked`, each read by `read`."""
    if not isinstance(interrupt.value, dict) or interrupt.value.get("kind") != kind:
        return None
    fields = Fields(interrupt.value)
    found = fields.each(asked)
    actions = tuple(read(str(index), part) for index, part in enumerate(found))
    twice = repeated(action.call_id for action in actions)
    for part, action in zip(found, actions, strict=True):
        if action.call_id in twice:
            part.fault("call_id", "is not unique")
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    description = actions[0].description if len(actions) == 1 else None
    return Question(kind, item_type, title(actions), description, actions, (), interrupt)


def keys(question: Question) -> Mapping[str | None, str]:
    return {action.call_id: action.key for action in question.actions}


def key(entry: Fields, known: Mapping[str | None, str]) -> str:
    """The key of the action that this entry answers; an id that nobody asked about stays itself, to be refused."""
    call_id = entry.text("call_id")
    return known.get(call_id, f"call_id {call_id}")
