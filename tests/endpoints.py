"""FastAPI analyses an endpoint once per worker, not once per test.

A test that needs an application makes one, with services of its own. Its 190 endpoints are closures over them, made of
the same functions each time, and to read their signatures takes most of such a test. This plugin keeps what was read,
and gives it to the new closure.

FastAPI also remembers thousands of endpoints, and with each the whole application of a test that is over. The garbage
collector would walk through all of them; this plugin forgets them after each test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fastapi.dependencies.models
import fastapi.routing
import pytest

_analyse = fastapi.routing._populate_api_route_state
_MEMORIES = [value for value in vars(fastapi.dependencies.models).values() if hasattr(value, "cache_clear")]


def pytest_configure(config: pytest.Config) -> None:
    fastapi.routing._populate_api_route_state = _Analysed()


def pytest_runtest_logfinish() -> None:
    for memory in _MEMORIES:
        memory.cache_clear()


class _Analysed:
    def __init__(self) -> None:
        self._states: dict[Any, dict[str, Any]] = {}

    def __call__(self, route: Any, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        key = (type(route), path, frozenset(options["methods"] or ()), endpoint.__code__, repr(options["responses"]))
        if key not in self._states:
            _analyse(route, path, endpoint, **options)
            self._states[key] = dict(vars(route))
            return
        vars(route).update(self._states[key])
        route.endpoint = endpoint
        route.dependant = replace(route.dependant, call=endpoint)
