"""`assent deployments` on the database itself."""

import pytest

from assent.threads.model.deployments import Trouble
from tests.cli.conftest import Assent


def test_webhook_is_printed_once_and_replaced_with_the_key(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_PUBLIC_URL", "https://assent.example.com")
    added = assent("deployments", "add", "http://127.0.0.1:9", "--name", "far")
    assert (added.code, "start the deployment" in added.err) == (1, True)
    made = assent("deployments", "webhook", "far").out
    assert made.startswith("https://assent.example.com/api/deployments/look?token=look_")
    rotated = assent("deployments", "rotate", "far", "--key", "other", "--url", "http://127.0.0.1:2399/", "--json").json
    assert rotated["webhook_url"].startswith("http://127.0.0.1:2399/api/deployments/look?token=look_")
    assert rotated["webhook_url"].rpartition("_")[2] not in made
    (listed,) = assent("deployments", "list", "--json").json
    assert (listed["has_webhook"], "webhook_url" in listed) == (True, False)
    assert assent("deployments", "webhook", "far", "--remove").out == "removed the webhook of far\n"
    assert assent("deployments", "list", "--json").json[0]["has_webhook"] is False


@pytest.mark.parametrize("problem", Trouble)
def test_each_problem_has_advice(problem: Trouble) -> None:
    assert problem.advice
