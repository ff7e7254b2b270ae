"""A mail before it is sent: from whom, to whom, what; those outside the sender's domain are pointed out."""

from __future__ import annotations

import re

from assent.web.language import gettext as _
from assent.web.renderers.blocks import Caution, Code, Facts, File, Files, Rendering, Text
from assent.web.renderers.mail_addresses import domain, noted, outside, people
from assent.web.renderers.reading import Args, View, call, entries, first, mapping, only, others, text
from assent.web.renderers.registry import renders

_SENDS = re.compile(r"(?i)mail")
_FROM = ("from", "from_", "sender", "from_email", "from_address")
_TO = {"To": ("to", "recipients", "recipient"), "Cc": ("cc",), "Bcc": ("bcc",), "Reply to": ("reply_to", "replyTo")}
_NAMES = tuple(name for names in _TO.values() for name in names)
_BODY = ("body", "text", "content", "message", "body_text")
_HTML = ("html", "body_html", "html_body")


def sends_mail(item: View) -> bool:
    name, args = call(item)
    worded = isinstance(args.get("subject"), str) and bool(text(args, *_BODY, *_HTML))
    return bool(_SENDS.search(name)) and first(args, *_TO["To"]) is not None and worded


@renders("email_draft", "email", label="Email draft", icon="mail", matches=sends_mail)
def email_draft(item: View) -> Rendering | None:
    args = only(item)
    if first(args, *_TO["To"], "subject", *_BODY, *_HTML) is None:
        return None
    home = next(filter(None, map(domain, people(first(args, *_FROM)))), "")
    body, html = text(args, *_BODY), text(args, *_HTML)
    return Rendering(
        _external(args, home),
        Facts({"From": people(first(args, *_FROM)), **_recipients(args, home), "Subject": args.get("subject")}),
        Text(body, "Body") if body else None,
        Code(html, "HTML", "Body") if html else None,
        _attachments(args),
        Facts(others(args, _FROM, *_NAMES, "subject", _BODY, _HTML, "attachments")),
    )


def _recipients(args: Args, home: str) -> dict[str, object]:
    return {label: noted(_all(args, names), home) for label, names in _TO.items()}


def _all(args: Args, names: tuple[str, ...]) -> list[str]:
    """Under whichever names: nobody is left out."""
    return [one for name in names for one in people(args.get(name))]


def _external(args: Args, home: str) -> Caution | None:
    found = [one for names in _TO.values() for one in outside(_all(args, names), home)]
    told = _("It goes outside %(domain)s.") % {"domain": home}
    return Caution(told, ", ".join(dict.fromkeys(found))) if found else None


def _attachments(args: Args) -> Files | None:
    named = [
        (text(mapping(one), "name", "filename", "path") or one, mapping(one))
        for one in entries(args.get("attachments"))
    ]
    files = [File(name, about.get("size"), text(about, "type", "mime_type", "content_type")) for name, about in named]
    return Files(files) if files else None
