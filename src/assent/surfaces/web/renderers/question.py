"""Questions: the text, its context, and the suggested answers."""

from __future__ import annotations

from assent.surfaces.web.renderers.blocks import Facts, Rendering, Text
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import View, entries, first, mapping, only, others, text

_WORDS, _CONTEXT, _OPTIONS = ("question", "message", "prompt", "query"), ("context", "details"), ("options", "choices")


@renders("question")
def question(item: View) -> Rendering | None:
    asked = only(item)
    words = text(asked, *_WORDS)
    if not words:
        return None
    context, options = text(asked, *_CONTEXT), entries(first(asked, *_OPTIONS))
    return Rendering(
        Text(words, large=True),
        Text(context, "Context") if context else None,
        Facts({"Options": [_option(option) for option in options], **others(asked, _WORDS, _CONTEXT, _OPTIONS)}),
    )


def _option(option: object) -> object:
    return text(mapping(option), "label", "title", "name") or option
