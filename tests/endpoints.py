"""FastAPI analyses an endpoint once per worker, not once per test.

A test that needs an application makes one, with services of its own. Its 190 endpoints are closures over them, made of
the same functions each time, and to read their signatures takes most of such a test. This plugin keeps what was read,
and puts the new closure into a copy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fastapi.routing
import pytest

_analyse = fastapi.routing._populate_api_route_state


def pytest_configure(config: pytest.Config) -> None:
    fastapi.routing._populate_api_route_state = _Analysed()


class _Analysed:
    def __init__(self) -> None:
        self._states: dict[Any, dict[str, Any]] = {}

    def __call__(self, route: Any, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if endpoint.__code__.co_freevars == ():
            return _analyse(route, path, endpoint, **options)
        key = (type(route), path, frozenset(options["methods"] or ()), endpoint.__code__, repr(options["responses"]))
        if key not in self._states:
            _analyse(route, path, endpoint, **options)
            self._states[key] = dict(vars(route))
            return
        vars(route).update({name: copy.copy(value) for name, value in self._states[key].items()})
        route.endpoint = endpoint
        route.dependant = replace(route.dependant, call=endpoint)
