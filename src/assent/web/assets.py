"""Scripts, styles and icons. Their address holds a digest of them all, so that browsers keep them for good and never
mix those of two releases."""

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

_FOLDER = Path(__file__).parent / "static"
_FOR_GOOD = "public, max-age=31536000, immutable"


@cache
def build() -> str:
    digest = hashlib.sha256()
    for file in sorted(_FOLDER.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def address(name: str) -> str:
    return f"/static/{build()}/{name}"


@cache
def sprite() -> Markup:
    """The icons, to stand in every page: a file of its own would be one request more, and slower to draw from."""
    symbols = (_FOLDER / "icons.svg").read_text(encoding="utf-8").partition(">")[2]
    return Markup('<svg class="sprite" aria-hidden="true">' + symbols)  # noqa: S704 - a file of ours


def app() -> ASGIApp:
    return GZipMiddleware(_Assets(directory=_FOLDER), minimum_size=500)


class _Assets(StaticFiles):
    def get_path(self, scope: Scope) -> str:
        """An older page may still ask by the digest it knows: it gets what there is, to be asked for again."""
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
