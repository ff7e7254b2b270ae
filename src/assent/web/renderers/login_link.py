"""A page to visit, most often to sign in: whose it is, letter by letter. The page itself has the way there."""

from __future__ import annotations

from assent.web.renderers import hosts
from assent.web.renderers.blocks import Caution, Facts, Rendering, Value
from assent.web.renderers.reading import View, only, text
from assent.web.renderers.registry import renders


@renders("oauth")
def login_link(item: View) -> Rendering | None:
    address = text(only(item), "url")
    if not address:
        return None
    host = hosts.of(address)
    if not host:
        return Rendering(Caution("This address cannot be read in only one way. Do not open it.", address))
    letters = hosts.unicode(host)
    return Rendering(
        Facts({"Host": host, "Spelled": _spelled(letters) if letters != host else None, "Address": address}),
        *_cautions(address, host, letters),
    )


def _spelled(letters: str) -> Value:
    return Value(letters, ", ".join(hosts.scripts(letters)), odd=True)


def _cautions(address: str, host: str, letters: str) -> list[Caution]:
    found = []
    if address[:5].lower() == "http:":
        found.append(Caution("The connection is not encrypted: others can read along.", host))
    if letters != host:
        found.append(Caution("The host has letters from outside ASCII, which can look like others.", letters))
    if hosts.is_number(host):
        found.append(Caution("The host is a number, not a name.", host))
    return found
