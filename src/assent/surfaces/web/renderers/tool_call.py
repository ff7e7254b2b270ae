"""Tool calls: the risk and the rules that rated it. The page itself shows name and arguments."""

from __future__ import annotations

from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Facts, Rendering
from assent.surfaces.web.renderers.registry import RISK, renders
from assent.surfaces.web.renderers.values.reading import View, actions, entries, mapping, text


@renders("tool")
def tool_call(item: View) -> Rendering | None:
    return Rendering(Facts(assessment(item))) if actions(item) else None


def assessment(item: View) -> dict[str, object]:
    """The risk of the only action; of several, the highest."""
    called = actions(item)
    rated = called[0] if len(called) == 1 else item
    risk, reasons = rated.get("risk"), [mapping(reason) for reason in entries(rated.get("risk_reasons"))]
    return {
        RISK: _(risk.capitalize()) if isinstance(risk, str) else _("Not rated by any rule"),
        "Why": [_(text(reason, "rule", "caution")) for reason in reasons if text(reason, "rule", "caution")],
        "Problems": entries(mapping(item.get("policy")).get("problems")),
    }
