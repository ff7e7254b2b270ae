"""Uploads to a knowledge base: files, sizes, and a preview of the first one."""

from __future__ import annotations

from assent.kernel.canonical import Json
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Facts, File, Files, Rendering, Text
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import Args, View, entries, first, mapping, only, others, text

PREVIEW = 2_000
_LISTS = ("files", "documents", "attachments", "sources")
_NAME = ("name", "filename", "file_name", "path", "title", "id", "url")
_SIZE = ("size", "bytes", "size_bytes", "length")
_TYPE = ("type", "mime_type", "content_type", "media_type")
_CONTENT = ("content", "text", "preview", "body", "excerpt")


@renders("knowledge_upload", label="Knowledge upload", icon="book")
def knowledge_upload(item: View) -> Rendering | None:
    args = only(item)
    documents = [document for name in _LISTS for document in entries(args.get(name))]
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
    size, content = first(document, *_SIZE), document.get("content")
    if size is None and isinstance(content, str) and "encoding" not in document:
        return len(content.encode(errors="replace"))
    return size if isinstance(size, int) else None


def _preview(args: Args, document: Json) -> Text:
    about = mapping(document)
    content = "" if "encoding" in about else text(about, *_CONTENT) or text(args, "preview")
    if not content:
        return Text(_("No text preview available."), _("Preview of the first document"))
    start = content if len(content) <= PREVIEW else f"{content[:PREVIEW]}…"
    return Text(start, _("Preview of the first document"))
