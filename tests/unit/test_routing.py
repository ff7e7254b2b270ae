"""Where a workspace review goes: each case by name, and 1,000 generated registries against a reference model."""

import random
from collections.abc import Mapping

import pytest

from assent.review.model.routing import DEEPEST, Link, Reason, Route, Routing, route, titled
from tests.scoreboard import RecordScore

Registry = Mapping[str, Link]


def routed(registry: Registry, start: str | None, tenant: str = "acme") -> Routing:
    return route(start, tenant, registry.get)


def registry(*links: Link) -> Registry:
    return {link.id: link for link in links}


def link(agent: str, parent: str | None = None, **facts: object) -> Link:
    return Link(agent, agent.upper(), str(facts.pop("tenant", "acme")), parent, **facts)  # type: ignore[arg-type]


@pytest.mark.promise("REVIEW-31")
def test_first_person_up_the_chain_is_asked() -> None:
    agents = registry(link("a", "b"), link("b", "c", human_id="ana"), link("c", human_id="ben", system=True))
    assert routed(agents, "a") == Routing(Route.PAIRED, ("A", "B"), human_id="ana")
    assert routed(agents, "c").human_id == "ben"


@pytest.mark.promise("REVIEW-32")
def test_chain_that_ends_at_a_system_agent_goes_to_the_operators() -> None:
    agents = registry(link("a", "b"), link("b", system=True))
    assert routed(agents, "a") == Routing(Route.SYSTEM, ("A", "B"))
    passed = registry(link("a", "b", system=True), link("b", human_id="ana"))
    assert routed(passed, "a").route is Route.PAIRED, "a system agent with a parent is not the end"


@pytest.mark.promise("REVIEW-33")
@pytest.mark.parametrize(
    ("agents", "reason"),
    [
        (registry(), Reason.UNKNOWN),
        (registry(link("a")), Reason.ORPHAN),
        (registry(link("a", "gone")), Reason.ORPHAN),
        (registry(link("a", "a")), Reason.CYCLE),
        (registry(link("a", "b"), link("b", "c"), link("c", "b")), Reason.CYCLE),
        (registry(link("a", "b"), link("b", tenant="other", human_id="eve")), Reason.TENANT),
        (registry(link("a", tenant="other", human_id="eve")), Reason.TENANT),
        (registry(link("a", human_id="ana", decides=False)), Reason.PAIR),
    ],
)
def test_broken_chain_is_unrouted_with_its_reason(agents: Registry, reason: Reason) -> None:
    routing = routed(agents, "a")
    assert (routing.route, routing.reason, routing.human_id) == (Route.UNROUTED, reason, None)
    assert titled(routing, "a: /notes") == "Workspace review (unrouted): a: /notes"


@pytest.mark.promise("REVIEW-33")
def test_eight_agents_are_walked_and_no_more() -> None:
    def chain(length: int) -> Registry:
        below = [link(str(number), str(number + 1)) for number in range(length - 1)]
        return registry(*below, link(str(length - 1), human_id="ana"))

    assert routed(chain(DEEPEST), "0").human_id == "ana"
    assert routed(chain(DEEPEST + 1), "0").reason is Reason.DEPTH


def expected(agents: Registry, start: str) -> tuple[str, str | None]:
    """The reference: first the whole path as a list, then its first end in a table of all positions."""
    path: list[str] = []
    at: str | None = start
    while at is not None and len(path) <= DEEPEST and path.count(at) == 0:
        path.append(at)
        at = agents[at].parent_id if at in agents else None
    for position, agent in enumerate(path):
        if position >= DEEPEST:
            return "unrouted", "depth"
        if agent not in agents:
            return "unrouted", "orphan" if position else "unknown"
        facts = agents[agent]
        if facts.tenant != "acme":
            return "unrouted", "tenant"
        if facts.human_id:
            return ("paired", facts.human_id) if facts.decides else ("unrouted", "pair")
        if facts.parent_id is None:
            return ("system", None) if facts.system else ("unrouted", "orphan")
    return "unrouted", "cycle"


def generated(seed: int) -> Registry:
    """A random registry: chains, trees, cycles, missing parents, foreign tenants, people who cannot decide."""
    rng = random.Random(seed)
    names = [f"agent-{number}" for number in range(rng.randint(1, 24))]
    paired, foreign, straight = rng.choice([0.0, 0.1, 0.4]), rng.choice([0.0, 0.1]), rng.random() < 0.5

    def parent(index: int) -> str | None:
        if rng.random() < 0.15:
            return rng.choice([None, "gone"])
        if straight:
            return names[index + 1] if index + 1 < len(names) else rng.choice([None, "gone", names[0]])
        return rng.choice(names)

    return registry(
        *(
            Link(
                name,
                name,
                "other" if rng.random() < foreign else "acme",
                parent(index),
                rng.choice(["ana", "ben"]) if rng.random() < paired else None,
                system=rng.random() < 0.4,
                decides=rng.random() < 0.8,
            )
            for index, name in enumerate(names)
        )
    )


@pytest.mark.scoreboard
@pytest.mark.promise("REVIEW-31", "REVIEW-32", "REVIEW-33")
def test_thousand_registries_agree_with_the_reference(record_score: RecordScore) -> None:
    results, walks = set[tuple[str, str | None]](), 0
    for seed in range(1_000):
        agents = generated(seed)
        for start in (*agents, "nobody"):
            routing = routed(agents, start)
            result = (routing.route.value, routing.human_id or (routing.reason.value if routing.reason else None))
            assert result == expected(agents, start), (seed, start)
            results.add(result)
            walks += 1
    target, told = "0 differences from the reference model", f"{walks} walks, 0 differences"
    record_score("routes of reviews in 1000 generated registries of agents", target, told)
    kinds = {("system", None), ("paired", "ana"), *(("unrouted", reason.value) for reason in Reason)}
    assert kinds <= results, "the registries contain every case"
