"""Documents on their way into a knowledge base: which files, how large, and how the first one begins."""

from __future__ import annotations

from assent.domain.canonical import Json
from assent.web.language import gettext as _
from assent.web.renderers.blocks import Facts, File, Files, Rendering, Text
from assent.web.renderers.reading import Args, View, entries, first, mapping, only, others, text
from assent.web.renderers.registry import renders

PREVIEW = 2_000
_LISTS = ("files", "documents", "attachments", "sources")
_NAME = ("name", "filename", "file_name", "path", "title", "id", "url")
_SIZE = ("size", "bytes", "size_bytes", "length")
_TYPE = ("type", "mime_type", "content_type", "media_type")
_CONTENT = ("content", "text", "preview", "body", "excerpt")


@renders("knowledge_upload", label="Knowledge upload", icon="book")
def knowledge_upload(item: View) -> Rendering | None:
    args = only(item)
    documents = [one for name in _LISTS for one in entries(args.get(name))]
    if not documents:
        return None
    about = others(args, *_LISTS, "preview")
    return Rendering(
        Facts({**about, "Documents": len(documents)}), Files(map(_file, documents)), _preview(args, documents[0])
    )


def _file(document: Json) -> File:
    about = mapping(document)
    name = document if isinstance(document, str) else first(about, *_NAME)
    return File(_("unnamed") if name is None else name, _size(about), text(about, *_TYPE))


def _size(document: Args) -> int | None:
    said, content = first(document, *_SIZE), document.get("content")
    if said is None and isinstance(content, str) and "encoding" not in document:
        return len(content.encode(errors="replace"))
    return said if isinstance(said, int) else None


def _preview(args: Args, document: Json) -> Text:
    about = mapping(document)
    found = "" if "encoding" in about else text(about, *_CONTENT) or text(args, "preview")
    if not found:
        return Text(_("No text of it was sent along."), _("Preview of the first document"))
    begins = found if len(found) <= PREVIEW else f"{found[:PREVIEW]}…"
    return Text(begins, _("Preview of the first document"))
