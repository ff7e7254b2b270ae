"""Scripts, styles and icons. Their URL contains a digest of all files, so that browsers can cache them forever and
never mix two releases."""

from __future__ import annotations

import hashlib
from functools import cache
from os import PathLike, stat_result
from pathlib import Path

from markupsafe import Markup
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from assent.surfaces import extensions
from assent.surfaces.http.public import public

_FOLDER = Path(__file__).parent / "static"
_FOR_GOOD = "public, max-age=31536000, immutable"


@cache
def build() -> str:
    digest = hashlib.sha256()
    for folder in (_FOLDER, *extensions.folders("static")):
        for file in sorted(folder.iterdir()):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def address(name: str) -> str:
    return f"/static/{build()}/{name}"


@cache
def sprite() -> Markup:
    """The icons, inlined into every page to save a request."""
    symbols = text("icons.svg").partition(">")[2]
    return Markup('<svg class="sprite" aria-hidden="true">' + symbols)  # noqa: S704 - our own file


def text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def counted_icon(count: str) -> str:
    """The icon with a badge."""
    icon = text("icon.svg").strip().removesuffix("</svg>")
    number = count if len(count) <= 2 else "99+"
    size, place = {1: (12, 17), 2: (10, 16.5)}.get(len(number), (7.5, 16))
    return (
        f'{icon}<rect x="10" y="10" width="14" height="14" rx="5" fill="#d92d20"/>'
        f'<text x="{17}" y="{place + 4}" text-anchor="middle" font-family="system-ui, sans-serif" font-weight="700"'
        f' font-size="{size}" fill="#fff">{number}</text></svg>'
    )


def app() -> ASGIApp:
    files = _Assets(directory=_FOLDER)
    files.all_directories += extensions.folders("static")
    return public(GZipMiddleware(files, minimum_size=500))


class _Assets(StaticFiles):
    def get_path(self, scope: Scope) -> str:
        """Drops the digest. A page of an older release gets the current file, uncached."""
        path = super().get_path(scope)
        first, _, rest = path.partition("/")
        return rest or first

    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        current = f"/static/{build()}/" in str(scope.get("path", ""))
        response.headers["Cache-Control"] = _FOR_GOOD if current else "no-cache"
        return response
