"""Email drafts: sender, recipients, subject, body. Recipients outside the sender's domain are marked."""

from __future__ import annotations

from assent.review.model.calls import mails
from assent.review.model.calls.mails import BODY, FROM, HTML, TO
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Caution, Code, Facts, File, Files, Rendering, Text
from assent.surfaces.web.renderers.mail_addresses import noted, people
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import Args, View, call, entries, first, mapping, only, others, text

_NAMES = tuple(name for names in TO.values() for name in names)


def sends_mail(item: View) -> bool:
    return mails.sends_mail(*call(item))


def sentence(item: View) -> str | None:
    args = only(item)
    to, subject = mails.recipients(args, TO["To"]), text(args, "subject")
    if not to:
        return None
    whom = str(to[0]) if len(to) == 1 else _("%(first)s, and %(n)s more") % {"first": to[0], "n": len(to) - 1}
    return (_("Send email to %(whom)s: %(subject)s") if subject else _("Send email to %(whom)s")) % {
        "whom": whom,
        "subject": subject,
    }


@renders("email_draft", "email", label="Email draft", icon="mail", matches=sends_mail, title=sentence)
def email_draft(item: View) -> Rendering | None:
    args = only(item)
    if first(args, *TO["To"], "subject", *BODY, *HTML) is None:
        return None
    home = mails.home(args)
    body, html = text(args, *BODY), text(args, *HTML)
    return Rendering(
        _external(args, home),
        Facts({"From": people(first(args, *FROM)), **_recipients(args, home), "Subject": args.get("subject")}),
        Text(body, "Body") if body else None,
        Code(html, "HTML", "Body") if html else None,
        _attachments(args),
        Facts(others(args, FROM, *_NAMES, "subject", BODY, HTML, "attachments")),
    )


def _recipients(args: Args, home: str) -> dict[str, object]:
    return {label: noted(mails.recipients(args, names), home) for label, names in TO.items()}


def _external(args: Args, home: str) -> Caution | None:
    external = mails.external(args)
    return Caution(_("Recipients outside %(domain)s.") % {"domain": home}, ", ".join(external)) if external else None


def _attachments(args: Args) -> Files | None:
    named = [
        (text(mapping(file), "name", "filename", "path") or file, mapping(file))
        for file in entries(args.get("attachments"))
    ]
    files = [File(name, about.get("size"), text(about, "type", "mime_type", "content_type")) for name, about in named]
    return Files(files) if files else None
