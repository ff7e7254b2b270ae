"""An agent's workspace, waiting for a look: the review's body, where it would be written, what would change.

One that found nobody to go to says which end of the chain of agents to investigate.
"""

from __future__ import annotations

from assent.domain.canonical import Json
from assent.web.language import gettext as _
from assent.web.renderers.blocks import Caution, Facts, Markdown, Rendering, Table
from assent.web.renderers.plain import plain
from assent.web.renderers.reading import Args, View, entries, first, mapping, only, text
from assent.web.renderers.registry import renders

SHOWN = 3
_UNROUTED = "workspace review (unrouted)"
_CHANGES = ("proposed_changes", "proposedChanges", "changes")
_WHY = {
    "orphan": "An agent in its chain names a parent that does not exist. Look for one that was deleted or moved.",
    "cycle": "Its chain of parents leads back to itself. Look for an agent that was made its own ancestor.",
    "depth": "Its chain of parents is longer than is followed. Look for agents that keep creating agents.",
}
_UNKNOWN = "Nobody was found to send it to. Look at the chain of parents: one that is missing, a circle, or too many."


@renders("workspace_review", label="Workspace review", icon="eye")
def workspace_review(item: View) -> Rendering | None:
    args = only(item)
    inner = {**mapping(args.get("payload")), **args}
    body = text(inner, "body", "review_body", "reviewBody")
    changes = entries(first(inner, *_CHANGES))
    if not (body or changes or _target(inner) or _is_unrouted(item, inner)):
        return None
    return Rendering(
        _unrouted(inner) if _is_unrouted(item, inner) else None,
        Facts(_about(inner)),
        Markdown(body) if body else None,
        Table(("Path", "Proposed change"), map(_row, changes[:SHOWN]), max(0, len(changes) - SHOWN))
        if changes
        else None,
    )


def _about(args: Args) -> dict[str, object]:
    return {
        "Target path": _target(args) or None,
        "Agent": first(args, "agent_name", "agentName", "agent_slug", "agentSlug", "agent_id", "agentId"),
        "Reason": text(args, "reason") or None,
        "Proposed changes": len(entries(first(args, *_CHANGES))) or None,
    }


def _target(args: Args) -> str:
    return text(args, "target_path", "targetPath", "target")


def _row(change: Json) -> tuple[str, str]:
    about = mapping(change)
    if not about:
        return "–", plain(change)
    said = first(about, "summary", "description", "diff", "content", "after", "kind", "action")
    return text(about, "path", "file", "target") or "–", plain(about if said is None else said)


def _is_unrouted(item: View, args: Args) -> bool:
    routed = mapping(args.get("classification") or args.get("routing"))
    titled = str(item.get("title") or "").lower().startswith(_UNROUTED)
    return titled or "unrouted" in (routed.get("kind"), routed.get("result"), args.get("classification"))


def _unrouted(args: Args) -> Caution:
    routed = mapping(args.get("classification") or args.get("routing"))
    reason = text(routed, "reason") or text(args, "unrouted_reason", "unroutedReason")
    why = next((told for word, told in _WHY.items() if word in reason.lower()), _UNKNOWN)
    chain = [plain(one) for one in entries(routed.get("chain"))]
    return Caution(f"{_('Unrouted.')} {_(why)}", " → ".join(chain) or reason)
