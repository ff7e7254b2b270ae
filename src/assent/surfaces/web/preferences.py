"""A person's language and theme, stored in cookies and set by a plain form."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from fastapi import Request, Response

LANGUAGES = {"en": "English", "zh": "简体中文"}
THEMES = {"system": "System", "light": "Light", "dark": "Dark"}
_COOKIES = {"language": "assent-language", "theme": "assent-theme"}
_YEAR = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Preferences:
    language: str = "en"
    theme: str = "system"


_current: ContextVar[Preferences] = ContextVar("preferences", default=Preferences())  # noqa: B039 - frozen


def current() -> Preferences:
    return _current.get()


def use(request: Request) -> None:
    """Applies the request's preferences to everything rendered for it."""
    language = request.cookies.get(_COOKIES["language"])
    theme = request.cookies.get(_COOKIES["theme"])
    supported = language if language in LANGUAGES else _accepted(request.headers.get("accept-language", ""))
    _current.set(Preferences(supported, theme if theme in THEMES else "system"))


def keep(response: Response, *, secure: bool, **wanted: str) -> None:
    choices = {"language": LANGUAGES, "theme": THEMES}
    for name, value in wanted.items():
        if value in choices[name]:
            response.set_cookie(_COOKIES[name], value, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)


def _accepted(header: str) -> str:
    """The first supported language of the Accept-Language header."""
    accepted = (part.split(";")[0].strip().lower().partition("-")[0] for part in header.split(","))
    return next((language for language in accepted if language in LANGUAGES), "en")
