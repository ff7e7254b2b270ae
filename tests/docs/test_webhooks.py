"""docs/webhooks.md: its snippet verifies what is really sent, its tables and times are those of the code."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assent.outbox import webhook_rules, webhook_signatures
from assent.outbox.client import REDIRECTS, TIMEOUT
from assent.outbox.model import DELAYS
from assent.settings import Settings
from assent.threads.model import webhooks
from assent.threads.model.runs import Outcome, RunStatus, run_view
from tests.unit.test_webhooks import RUN

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text("utf-8")
KEY = webhook_signatures.signing_key(b"s" * 32, "acme")


@pytest.fixture
def verify() -> Any:
    (snippet,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def verify" in block]
    names: dict[str, Any] = {}
    exec(snippet, names)  # noqa: S102 - our own page
    return names["verify"]


def test_snippet_accepts_only_signed_webhooks(verify: Any) -> None:
    content = webhook_signatures.stamped('{"run_id":"r1"}', datetime.now(UTC))
    headers = webhook_signatures.headers(KEY, "d1", datetime.now(UTC), content)
    secret = webhook_signatures.shown_key(KEY)
    verify(headers, content, secret)
    rotated = {**headers, "webhook-signature": f"v1,c29tZXRoaW5n {headers['webhook-signature']}"}
    verify(rotated, content, secret)
    for wrong in ({"webhook-id": "d2"}, {"webhook-timestamp": "1614265330"}, {"webhook-signature": "v1,AAAA"}):
        with pytest.raises(ValueError, match=r"too old|not from here"):
            verify({**headers, **wrong}, content, secret)
    with pytest.raises(ValueError, match="not from here"):
        verify(headers, content + b" ", secret)


def test_every_field_of_the_body_is_named() -> None:
    beside_the_row = webhooks.body(RUN, Outcome(RunStatus.SUCCESS), []).keys() - run_view(RUN).keys()
    assert {field for field in beside_the_row if f"`{field}`" not in PAGE} == set()


def test_documented_times_match_the_code() -> None:
    assert [delay.total_seconds() for delay in DELAYS] == [1, 5, 30, 120, 600, 3600, 10800, 21600, 43200]
    assert "1 s, 5 s, 30 s, 2 min, 10 min, 1 h, 3 h, 6 h and 12 h" in PAGE
    assert f"has {TIMEOUT:.0f} seconds" in PAGE
    assert REDIRECTS == 3
    assert f"{Settings().retention_deliveries.days} days" in PAGE


def test_documented_langgraph_json_block_is_valid() -> None:
    (block,) = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    rules = webhook_rules.read(block["webhooks"], {"LG_WEBHOOK_TOKEN": "t0ken"})
    assert rules.https_only
    assert rules.ports == {443}
    assert rules.headers == {"authorization": "Bearer t0ken"}
