"""Links to visit, usually to sign in: the host, with warnings for look-alikes. The item's page has the link itself."""

from __future__ import annotations

from assent.surfaces.web.renderers.blocks import Caution, Facts, Rendering, Value
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values import hosts
from assent.surfaces.web.renderers.values.reading import View, only, text


@renders("oauth")
def login_link(item: View) -> Rendering | None:
    address = text(only(item), "url")
    if not address:
        return None
    host = hosts.of(address)
    if not host:
        return Rendering(Caution("This address is ambiguous. Do not open it.", address))
    letters = hosts.unicode(host)
    return Rendering(
        Facts({"Host": host, "Decoded": _spelled(letters) if letters != host else None, "Address": address}),
        *_cautions(address, host, letters),
    )


def _spelled(letters: str) -> Value:
    return Value(letters, ", ".join(hosts.scripts(letters)), odd=True)


def _cautions(address: str, host: str, letters: str) -> list[Caution]:
    warnings = []
    if address[:5].lower() == "http:":
        warnings.append(Caution("The connection is not encrypted: others can read it.", host))
    if letters != host:
        warnings.append(Caution("The host contains non-ASCII letters, which can imitate other letters.", letters))
    if hosts.is_number(host):
        warnings.append(Caution("The host is an IP address, not a name.", host))
    return warnings
