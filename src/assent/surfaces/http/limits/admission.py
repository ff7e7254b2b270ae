"""Limits of open requests, of those in execution and of request rates: per caller, per tenant, and per address for
anonymous requests.

A stream is a request that stays open, so the limits of open requests bound streams as well. Programs can use at most
four fifths of them: agents and services together cannot keep a person from deciding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from assent.errors import QuotaExceeded, TooManyRequests, Unavailable
from assent.identity.model.access import Kind, Principal
from assent.settings import Settings
from assent.surfaces.http.limits.bodies import Bodies, Body
from assent.surfaces.http.limits.execution import Execution
from assent.surfaces.http.limits.rates import Rate
from assent.surfaces.http.limits.turns import Turns

_FOR_PROGRAMS = 0.8
_PER_ADDRESS = 4
"""One address can use a quarter of the anonymous requests."""


class Admission:
    def __init__(self, settings: Settings) -> None:
        self._most = settings.max_open_requests
        self._most_anonymous = settings.max_open_anonymous
        self._most_of_caller = settings.max_open_requests_per_caller
        self._most_of_tenant = settings.quota_open_requests
        self._calls = Rate(settings.rate_limit, hint="see the setting rate_limit")
        self._anonymous_calls = Rate(settings.rate_limit_anonymous, hint="see the setting rate_limit_anonymous")
        self._refused_calls = Rate(settings.rate_limit_anonymous, hint="see the setting rate_limit_anonymous")
        self._sign_ins = Rate(
            settings.rate_limit_sign_in / 60,
            burst=settings.rate_limit_sign_in,
            hint="see the setting rate_limit_sign_in",
        )
        self._turns = Turns(settings.max_executing_per_caller, settings.max_waiting_per_caller)
        self._bodies = Bodies(settings.max_buffered_bytes, settings.max_buffered_bytes_per_caller)
        self._open = self._arriving = 0
        self._by_caller: Counter[str] = Counter()
        self._by_tenant: Counter[str] = Counter()
        self._anonymous = 0
        self._by_address: Counter[str] = Counter()

    @contextmanager
    def anonymous(self, address: str) -> Iterator[None]:
        """A request to a public route, or one that is not authenticated yet."""
        if self._anonymous >= self._most_anonymous:
            raise Unavailable(
                "too many requests without a credential are open", hint="see the setting max_open_anonymous"
            )
        if self._by_address[address] >= max(self._most_anonymous // _PER_ADDRESS, 1):
            raise TooManyRequests(
                "too many anonymous requests are open from this address",
                hint="see the setting max_open_anonymous",
            )
        self._anonymous += 1
        self._by_address[address] += 1
        try:
            yield
        finally:
            self._anonymous -= 1
            _less(self._by_address, address)

    @contextmanager
    def arriving(self, address: str, *, reads: bool) -> Iterator[None]:
        """A request that is being authenticated. If that needs the body (`reads`), which can arrive slowly, the request
        counts as anonymous."""
        if reads:
            with self.anonymous(address):
                yield
            return
        if self._arriving >= self._most:
            raise Unavailable("too many requests are open at once", hint="see the setting max_open_requests")
        self._arriving += 1
        try:
            yield
        finally:
            self._arriving -= 1

    @contextmanager
    def caller(self, principal: Principal) -> Iterator[None]:
        name = _name(principal)
        self._require_capacity(principal, name)
        self._calls.spend(name)
        self._open += 1
        self._by_caller[name] += 1
        self._by_tenant[principal.tenant] += 1
        try:
            yield
        finally:
            self._open -= 1
            _less(self._by_caller, name)
            _less(self._by_tenant, principal.tenant)

    @asynccontextmanager
    async def turn(self, principal: Principal) -> AsyncIterator[None]:
        """A command on an open web socket, which counts like a request."""
        name = _name(principal)
        self._calls.spend(name)
        await self._turns.take(name)
        try:
            yield
        finally:
            self._turns.end(name)

    def execution(self, principal: Principal) -> Execution:
        return Execution(self._turns, _name(principal), Body(self._bodies, _name(principal), _share(principal)))

    def anonymous_execution(self, address: str) -> Execution:
        return Execution(self._turns, address, self.unclaimed_body(address))

    def unclaimed_body(self, address: str) -> Body:
        """A body that arrives before its caller is authenticated."""
        return Body(self._bodies, address, _FOR_PROGRAMS)

    def count_anonymous(self, address: str) -> None:
        """A request to a public route."""
        self._anonymous_calls.spend(address)

    def count_refused(self, address: str) -> None:
        """A request whose credential was refused. Counted apart from public routes, so that a program with a bad key
        does not block the sign-in page for a person at the same address."""
        self._refused_calls.spend(address)

    @contextmanager
    def sign_in(self, address: str) -> Iterator[None]:
        """An attempt to sign in; only failed attempts count."""
        self._sign_ins.spend(address)
        yield
        self._sign_ins.give_back(address)

    def forget(self) -> None:
        """Resets the rates, not the counts of open requests."""
        for rate in (self._calls, self._anonymous_calls, self._refused_calls, self._sign_ins):
            rate.forget()

    def _require_capacity(self, principal: Principal, name: str) -> None:
        share = _share(principal)
        if self._open >= self._most * share:
            raise Unavailable("too many requests are open at once", hint="see the setting max_open_requests")
        if self._by_tenant[principal.tenant] >= self._most_of_tenant * share:
            raise QuotaExceeded(
                "too many requests of this tenant are open at once",
                hint="see the setting quota_open_requests",
                quota="open_requests",
                limit=self._most_of_tenant,
            )
        if self._by_caller[name] >= self._most_of_caller:
            raise TooManyRequests(
                "this caller has too many requests open at once", hint="see the setting max_open_requests_per_caller"
            )


def _name(principal: Principal) -> str:
    return f"{principal.tenant} {principal.actor}"


def _share(principal: Principal) -> float:
    return 1.0 if principal.kind is Kind.REVIEWER else _FOR_PROGRAMS


def _less(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if counter[name] <= 0:
        del counter[name]
