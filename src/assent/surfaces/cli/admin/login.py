"""`assent login` and `assent logout`: profiles for commands that call a server."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from assent.errors import Invalid
from assent.surfaces.cli import output, profiles
from assent.surfaces.cli.remote import Remote


def add_to(app: typer.Typer) -> None:
    app.command()(login)
    app.command()(logout)


def login(
    url: Annotated[str, typer.Option(help="The server's address.", prompt="server", metavar="URL")],
    key: Annotated[str, typer.Option(help="Your API key.", prompt="key", hide_input=True, metavar="KEY")],
    profile: Annotated[str, typer.Option(help="The name of the profile.", metavar="NAME")] = profiles.DEFAULT,
) -> None:
    """Store a server and a key for later commands, after a check that they work."""
    address, secret = url.strip().rstrip("/"), key.strip()
    if not address.startswith(("http://", "https://")):
        raise Invalid(f"{address!r} is not an address", hint="such as https://assent.example.com")

    async def check() -> dict[str, Any]:
        async with Remote(address, secret, via="cli") as server:
            me: dict[str, Any] = await server.get("/api/me")
            return me

    me = asyncio.run(check())
    path = profiles.keep(profile, profiles.Stored(address, secret))
    output.say(f"signed in to {address} as {me['kind']} {me['name']}: profile {profile} in {path}")


def logout(
    profile: Annotated[str, typer.Option(help="The name of the profile.", metavar="NAME")] = profiles.DEFAULT,
) -> None:
    """Remove a profile; the key itself stays valid until it is revoked."""
    profiles.forget(profile)
    output.say(f"removed the profile {profile}")
