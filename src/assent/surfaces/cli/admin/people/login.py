"""`assent login` and `assent logout`: profiles for commands that call a server."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import typer

from assent.errors import Invalid
from assent.surfaces.cli import output, profiles
from assent.surfaces.cli.options import settings
from assent.surfaces.cli.remote import Key, Remote, Url


def add_to(app: typer.Typer) -> None:
    app.command()(login)
    app.command()(logout)


def login(
    url: Url = None,
    key: Key = None,
    profile: Annotated[str, typer.Option(help="The name of the profile.", metavar="NAME")] = profiles.DEFAULT,
) -> None:
    """Store a server and a key for later commands, after a check that they work."""
    conf = settings(url=url, api_key=key)
    given = conf.url if "url" in conf.model_fields_set else _asked("server", "--url or ASSENT_URL")
    secret = (conf.api_key.get_secret_value() if conf.api_key else _asked("key", "--key or ASSENT_API_KEY")).strip()
    address = given.strip().rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise Invalid(f"{address!r} is not an address", hint="such as https://assent.example.com")

    async def check() -> dict[str, Any]:
        async with Remote(address, secret, via="cli") as server:
            me: dict[str, Any] = await server.get("/api/me")
            return me

    me = asyncio.run(check())
    path = profiles.keep(profile, profiles.Stored(address, secret))
    output.say(f"signed in to {address} as {me['kind']} {me['name']}: profile {profile} in {path}")


def _asked(name: str, options: str) -> str:
    if not sys.stdin.isatty():
        raise Invalid(f"no {name} is given", hint=f"set {options}")
    return str(typer.prompt(name, hide_input=name == "key", err=True))


def logout(
    profile: Annotated[str, typer.Option(help="The name of the profile.", metavar="NAME")] = profiles.DEFAULT,
) -> None:
    """Remove a profile; the key itself stays valid until it is revoked."""
    profiles.forget(profile)
    output.say(f"removed the profile {profile}")
