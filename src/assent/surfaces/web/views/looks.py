"""One call as a person sees it: its kind, the view of its renderer, and its cautions. Nothing that stands elsewhere on
the page is said again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.review.model.schemas.present import values_now
from assent.review.model.secrets import MASK
from assent.surfaces.web import renderers
from assent.surfaces.web.renderers import form
from assent.surfaces.web.renderers.blocks import Block, Diff, Facts, Heading, Text
from assent.surfaces.web.text.words import Sign

View = Mapping[str, Any]

AGENT_SAYS = "Present values, according to the agent"
"""`x-now` comes with the question: nobody has checked it."""


@dataclass(frozen=True, slots=True)
class Look:
    """`kind` is None for a plain tool, whose name says what it is."""

    kind: Sign | None
    blocks: Sequence[Block]
    drawn: bool
    """Whether a renderer drew the arguments."""


def of_action(item: View, action: View, heading: str, *, asks: bool = False) -> Look:
    """`asks`: the page has an input for each requested field."""
    rendering = renderers.shown(item, action)
    blocks = rendering.blocks if rendering else ()
    shown = [block for block in blocks if not (_repeats(block, heading) or (asks and _lists_fields(block)))]
    changes = _changes(action, with_rest=rendering is None)
    return Look(_kind(item, action, blocks), [*changes, *shown], rendering is not None or bool(changes))


def _changes(action: View, *, with_rest: bool) -> list[Block]:
    """The present values of what the call changes, beside the new ones; `with_rest`, the other arguments too."""
    now = {name: value for name, value in values_now(action["schema"], action["args"]).items() if value != MASK}
    new = {name: action["args"][name] for name in now}
    if not now or MASK in new.values():
        return []
    rest = {name: value for name, value in action["args"].items() if name not in now}
    return [Diff.between(now, new, AGENT_SAYS), *([Facts(rest)] if with_rest and rest else [])]


def is_named_after_its_type(item: View, action: View) -> bool:
    """Whether the name is not that of a tool: a request or a question that has no name of its own."""
    return action["name"] in (item["type"], item["dialect"])


def _kind(item: View, action: View, blocks: Sequence[Block]) -> Sign | None:
    first = blocks[0] if blocks else None
    if isinstance(first, Heading):
        return Sign(first.icon, first.text)
    return renderers.sign(item["type"]) if is_named_after_its_type(item, action) else None


def _repeats(block: Block, heading: str) -> bool:
    return isinstance(block, Heading) or (isinstance(block, Text) and block.text == heading)


def _lists_fields(block: Block) -> bool:
    return isinstance(block, Facts) and bool(block.rows) and block.rows[0].label == form.FIELDS


def cautions(action: View) -> list[View]:
    """Each quote once: not after an earlier caution, nor if it is the whole of an argument, which stands below."""
    args = action["args"] if isinstance(action["args"], dict) else {}
    said = {value.strip() for value in args.values() if isinstance(value, str)}
    told = list[View]()
    for caution in action["cautions"]:
        quote = caution["detail"].strip()
        told.append({**caution, "detail": "" if quote in said else caution["detail"]})
        said.add(quote)
    return told
