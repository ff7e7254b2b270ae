"""Reviews of an agent's workspace: body, target path and proposed changes.

An unrouted review has a hint about the broken chain of parent agents.
"""

from __future__ import annotations

from assent.kernel.canonical import Json
from assent.review.model.routing import ADVICE
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Caution, Facts, Markdown, Rendering, Table
from assent.surfaces.web.renderers.plain import plain
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import Args, View, entries, first, mapping, only, text

SHOWN = 3
_UNROUTED = "workspace review (unrouted)"
_CHANGES = ("proposed_changes", "proposedChanges", "changes")
_UNKNOWN = "No recipient found. Check the parent chain for a missing parent, a cycle, or too many levels."


@renders("workspace_review", label="Workspace review", icon="eye")
def workspace_review(item: View) -> Rendering | None:
    args = only(item)
    inner = {**mapping(args.get("payload")), **args}
    body = text(inner, "body", "review_body", "reviewBody")
    changes = entries(first(inner, *_CHANGES))
    routed = _routing(item, inner)
    if not (body or changes or _target(inner) or _is_unrouted(item, routed)):
        return None
    return Rendering(
        _unrouted(inner, routed) if _is_unrouted(item, routed) else None,
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
    change = first(about, "summary", "description", "diff", "content", "after", "kind", "action")
    return text(about, "path", "file", "target") or "–", plain(about if change is None else change)


def _routing(item: View, args: Args) -> Args:
    """The route of the item; a request may bring one of its own."""
    own = args.get("classification") or args.get("routing")
    return mapping(item.get("routing") or ({"kind": own} if isinstance(own, str) else own))


def _is_unrouted(item: View, routed: Args) -> bool:
    titled = str(item.get("title") or "").lower().startswith(_UNROUTED)
    return titled or "unrouted" in (routed.get("kind"), routed.get("result"))


def _unrouted(args: Args, routed: Args) -> Caution:
    reason = text(routed, "reason") or text(args, "unrouted_reason", "unroutedReason")
    why = next((hint for word, hint in ADVICE.items() if word in reason.lower()), _UNKNOWN)
    chain = [plain(agent) for agent in entries(routed.get("chain"))]
    return Caution(f"{_('Unrouted.')} {_(why)}", " → ".join(chain) or reason)
