"""Results of MCP tools as text for the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assent.kernel.canonical import Json


@dataclass(frozen=True, slots=True)
class Result:
    """The result or the error of a tool, as text for the model."""

    text: str
    failed: bool = False
    structured: Json = None


def result_of(result: Any) -> Result:
    text = "\n".join(map(text_of, result.content))
    return Result(text, failed=bool(result.is_error), structured=result.structured_content)


def text_of(part: Any) -> str:
    """A part of a result as text. Binary data is named, with its type and size."""
    if part.type == "text":
        return str(part.text)
    if part.type == "resource_link":
        return " ".join(filter(None, (f"[{part.name}]({part.uri})", part.description)))
    if part.type == "resource":
        return _resource(part.resource)
    return f"[{part.type}, {_described(part.mime_type, part.data)}]"


def _resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    if text is not None:
        return f"{resource.uri}:\n{text}"
    return f"[{resource.uri}, {_described(resource.mime_type, resource.blob)}]"


def _described(mime_type: str | None, base64: str) -> str:
    size = len(base64) * 3 // 4 - base64[-2:].count("=")
    return f"{mime_type or 'unknown type'}, {size} bytes"
