import pytest

from assent.kernel.store.drivers.connections import FEWEST, divide


@pytest.mark.parametrize("executes", [True, False])
@pytest.mark.parametrize("budget", [*range(FEWEST, 40), 500])
def test_divided_connections_never_exceed_the_budget(budget: int, executes: bool) -> None:
    shares = divide(budget, executes=executes)
    listener, heartbeat = 1, int(executes)
    assert shares.store + shares.queue + shares.frames + listener + heartbeat == budget
    assert shares.store >= 2
    assert shares.frames >= 1
    assert shares.queue >= (3 if executes else 1)


def test_budget_is_divided_as_in_the_documented_examples() -> None:
    default, least = divide(20, executes=True), divide(FEWEST, executes=True)
    assert (default.store, default.queue, default.frames) == (12, 4, 2)
    assert (least.store, least.queue, least.frames) == (2, 3, 1)
    assert divide(20, executes=False).store == 15
