"""The benchmark runner: choosing by name, verdicts, the exit code."""

import json

import pytest

from bench.__main__ import main, print_json, print_table
from bench.rows import at_least, at_most, ratio_at_least, ratio_at_most


def test_measure_is_ok_when_it_meets_its_target() -> None:
    assert at_least("rate", 10, "runs/s", target=10).ok
    assert not at_most("start", 1.6, "s", target=1.5).ok
    assert ratio_at_least("writes", 400, "tx/s", peer=200, target=2).ok
    assert not ratio_at_most("latency", 3.1, "ms", peer=1, target=3).ok


def test_measure_without_a_peer_has_no_ratio() -> None:
    assert ratio_at_least("writes", 400, "tx/s", peer=200, target=2).ratio == 2
    assert at_least("rate", 10, "runs/s", target=10).ratio is None


def test_table_and_json_show_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    row = ratio_at_least("writes", 400, "tx/s", peer=200, target=2)
    print_table([row])
    assert "writes" in capsys.readouterr().out
    print_json([row])
    assert json.loads(capsys.readouterr().out)["rows"][0]["ratio"] == 2


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing-like-it"])
    assert "no benchmark 'nothing-like-it'" in capsys.readouterr().err
