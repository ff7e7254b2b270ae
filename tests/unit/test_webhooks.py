"""The body of a run's webhook, and its signature."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from assent.outbox import webhook_signatures
from assent.threads.model import webhooks
from assent.threads.model.runs import Outcome, Run, RunStatus, Strategy, run_view
from tests.receiver import Call, verified

NOW = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)
QUESTION = {"id": "a" * 32, "value": {"question": "May I?"}}
RUN = Run(
    id="r1",
    thread_id="t1",
    assistant_id="a1",
    graph_id="agent",
    status=RunStatus.SUCCESS,
    position=1,
    attempt=1,
    actor="agent:a",
    answers=False,
    wake_at=None,
    cancel=None,
    temporary=False,
    multitask_strategy=Strategy.REJECT,
    metadata={"who": "ana"},
    kwargs={"input": {"n": 1}},
    error=None,
    webhook="https://hooks.example/x",
    created_at=NOW,
    updated_at=NOW,
    started_at=NOW,
    ended_at=NOW,
)


def told(outcome: Outcome, pending: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return webhooks.body(RUN, outcome, outcome.pending if pending is None else pending)


def test_webhook_body_has_the_run_and_its_outcome() -> None:
    body = told(Outcome(RunStatus.SUCCESS, values={"n": 2}))
    assert body.items() >= run_view(RUN).items()
    assert body.keys() - run_view(RUN).keys() == {
        "run_started_at", "run_ended_at", "values", "error", "waiting", "interrupts", "next",
    }  # fmt: skip
    assert (body["status"], body["values"], body["error"]) == ("success", {"n": 2}, None)
    assert body["run_started_at"] == body["run_ended_at"] == NOW.isoformat()


@pytest.mark.parametrize(
    ("outcome", "status", "waiting", "interrupts"),
    [
        (Outcome(RunStatus.SUCCESS, values={}), "success", False, []),
        (Outcome(RunStatus.SUCCESS, interrupts={"t": [QUESTION]}, next=("ask",)), "success", True, [QUESTION]),
        (Outcome(RunStatus.SUCCESS, next=("stop_here",)), "success", True, []),
        (Outcome(RunStatus.ERROR, error={"error": "ValueError", "message": "x"}), "error", False, []),
        (Outcome(RunStatus.ERROR, interrupts={"t": [QUESTION]}, next=("ask",)), "error", True, [QUESTION]),
        (Outcome(RunStatus.TIMEOUT), "timeout", False, []),
        (Outcome(RunStatus.INTERRUPTED, next=("step",)), "interrupted", False, []),
        (Outcome(RunStatus.INTERRUPTED, rolled_back=True), "rollback", False, []),
    ],
)
def test_webhook_distinguishes_waiting_from_done(
    outcome: Outcome, status: str, waiting: bool, interrupts: list[Any]
) -> None:
    body = told(outcome)
    assert (body["status"], body["waiting"], body["interrupts"]) == (status, waiting, interrupts)
    assert body["next"] == list(outcome.next)


def test_rolled_back_run_leaves_the_earlier_interrupts_pending() -> None:
    body = told(Outcome(RunStatus.INTERRUPTED, rolled_back=True), [QUESTION])
    assert (body["status"], body["waiting"], body["interrupts"]) == ("rollback", True, [QUESTION])


def test_a_run_that_never_began_has_no_start() -> None:
    assert webhooks.body(replace(RUN, started_at=None), Outcome(RunStatus.INTERRUPTED), [])["run_started_at"] is None


@pytest.mark.parametrize("value", [12345678901234567890123, 1.0, "}", 'a"}', "é\u2028", None])
def test_sending_adds_only_the_time_to_the_stored_body(value: object) -> None:
    text = json.dumps({"value": value}, ensure_ascii=False)
    stamped = webhook_signatures.stamped(text, NOW)
    assert stamped.startswith(text.removesuffix("}").encode())
    assert json.loads(stamped) == {"value": value, "webhook_sent_at": NOW.isoformat()}


def test_signature_matches_the_example_of_the_standard() -> None:
    key = bytes.fromhex("31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0")
    assert webhook_signatures.shown_key(key) == "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = webhook_signatures.headers(
        key, "msg_p5jXN8AQM9LWM0D4loKWxJek", datetime.fromtimestamp(1614265330, UTC), b'{"test": 2432232314}'
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


class TestSignature:
    KEY = webhook_signatures.signing_key(b"s" * 32, "acme")

    def call(self, **changes: Any) -> Call:
        headers = webhook_signatures.headers(self.KEY, "d1", NOW, b"{}")
        return replace(Call("POST", "/", headers, b"{}"), **changes)

    def test_signature_verifies_with_the_shown_secret(self) -> None:
        assert verified(self.call(), webhook_signatures.shown_key(self.KEY))

    @pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp"])
    def test_signature_covers_id_and_time(self, header: str) -> None:
        call = self.call()
        assert not verified(self.call(headers=call.headers | {header: "1"}), webhook_signatures.shown_key(self.KEY))

    def test_signature_covers_every_byte_of_the_body(self) -> None:
        assert not verified(self.call(content=b"{ }"), webhook_signatures.shown_key(self.KEY))

    @pytest.mark.promise("P10")
    def test_signature_of_one_tenant_differs_from_another(self) -> None:
        other = webhook_signatures.signing_key(b"s" * 32, "other")
        assert not verified(self.call(), webhook_signatures.shown_key(other))
        assert not verified(self.call(), webhook_signatures.shown_key(b"s" * 32)), (
            "nor is it the installation's secret itself"
        )
