"""How a person likes the pages: language and theme. Kept in cookies of their browser, set by a plain form."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from fastapi import Request, Response

LANGUAGES = {"en": "English", "zh": "简体中文"}
THEMES = {"system": "As the system", "light": "Light", "dark": "Dark"}
_COOKIES = {"language": "assent-language", "theme": "assent-theme"}
_YEAR = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Preferences:
    language: str = "en"
    theme: str = "system"


_current: ContextVar[Preferences] = ContextVar("preferences", default=Preferences())  # noqa: B039  (it is frozen)


def current() -> Preferences:
    return _current.get()


def use(request: Request) -> None:
    """For everything that is rendered for this request."""
    language = request.cookies.get(_COOKIES["language"])
    theme = request.cookies.get(_COOKIES["theme"])
    known = language if language in LANGUAGES else _accepted(request.headers.get("accept-language", ""))
    _current.set(Preferences(known, theme if theme in THEMES else "system"))


def keep(response: Response, *, secure: bool, **wanted: str) -> None:
    choices = {"language": LANGUAGES, "theme": THEMES}
    for name, value in wanted.items():
        if value in choices[name]:
            response.set_cookie(_COOKIES[name], value, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)


def _accepted(header: str) -> str:
    """The first language of the browser's list that we speak."""
    spoken = (part.split(";")[0].strip().lower().partition("-")[0] for part in header.split(","))
    return next((one for one in spoken if one in LANGUAGES), "en")
