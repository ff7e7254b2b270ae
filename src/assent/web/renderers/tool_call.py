"""A call of any tool. Its name and arguments stand above; what is left to say is how its risk was judged, and by which
rule."""

from __future__ import annotations

from assent.web.language import gettext as _
from assent.web.renderers.blocks import Facts, Rendering
from assent.web.renderers.reading import View, actions, entries, mapping
from assent.web.renderers.registry import renders


@renders("tool")
def tool_call(item: View) -> Rendering | None:
    return Rendering(Facts(assessment(item))) if actions(item) else None


def assessment(item: View) -> dict[str, object]:
    risk = item.get("risk")
    policy = mapping(item.get("policy"))
    rules = [mapping(one).get("name") for one in entries(policy.get("rules"))]
    return {
        "Risk": _(risk.capitalize()) if isinstance(risk, str) else _("No rule says"),
        "Why": [name for name in rules if isinstance(name, str)],
        "Problems": entries(policy.get("problems")),
    }
