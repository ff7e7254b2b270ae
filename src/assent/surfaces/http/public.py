"""Public routes: requests that need no credential, by the method and the path of a route marked as public.

A new route is closed by default, and a path alone opens nothing: a route of the author's app with the same path, or
another method, needs authentication like the rest of that app.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

_MARK = "_assent_public"
_UNREAD = "_assent_unread"
T = TypeVar("T")


def public(endpoint: T) -> T:
    """Marks an endpoint, or an app to be mounted, as public."""
    setattr(endpoint, _MARK, True)
    return endpoint


def unread(endpoint: T) -> T:
    """Marks a public endpoint that does not read its body, which then may have any size."""
    setattr(endpoint, _UNREAD, True)
    return endpoint


def is_marked(route: BaseRoute) -> bool:
    served: Any = getattr(route, "endpoint", None) or getattr(route, "app", None)
    return getattr(served, _MARK, False) is True


class PublicRoutes:
    """The marked routes. `open_app` is the author's mounted app if the project makes it public: then every request that
    matches no route of ours is public."""

    def __init__(self, routes: Sequence[BaseRoute], open_app: BaseRoute | None = None) -> None:
        self._routes = routes
        self._open = tuple(route for route in routes if is_marked(route))
        self._fixed = frozenset(path for route in self._open if (path := _fixed_path(route)))
        self._prefixes = tuple(_prefix(route) for route in self._open if not _fixed_path(route))
        self._unread = tuple(route for route in self._open if getattr(getattr(route, "endpoint", None), _UNREAD, False))
        self._open_app = open_app

    def match(self, scope: Scope) -> bool:
        if scope["type"] == "http" and self._may_serve(scope) and _serves(self._open, scope):
            return True
        if self._open_app is None or not _serves((self._open_app,), scope):
            return False
        return not _serves((route for route in self._routes if route is not self._open_app), scope)

    def is_unread(self, scope: Scope) -> bool:
        """Whether a public route serves this request without its body."""
        return self._may_serve(scope) and _serves(self._unread, scope)

    def _may_serve(self, scope: Scope) -> bool:
        """Whether a marked route can match this path. Saves most requests from being matched with each of them."""
        path = scope["path"]
        return bool(scope.get("root_path")) or path in self._fixed or path.startswith(self._prefixes)


def _fixed_path(route: BaseRoute) -> str | None:
    """The only path that the route serves; None if it has parameters, or serves all paths below its own."""
    path: str | None = getattr(route, "path", None)
    return path if isinstance(route, Route) and path and "{" not in path else None


def _prefix(route: BaseRoute) -> str:
    return str(getattr(route, "path", "")).partition("{")[0]


def _serves(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)
