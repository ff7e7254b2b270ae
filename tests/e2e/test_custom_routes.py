"""`http.app` in langgraph.json: the author's routes answer behind ours and need a credential like everything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import fast_folder
from tests.servers import ServerProcess, dev_server, running

PROJECT = Path(__file__).parents[1] / "graphs_http" / "langgraph.json"


@pytest.fixture(params=["sqlite", "postgres"])
def custom(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    if request.param == "sqlite":
        database = f"sqlite:///{fast_folder(tmp_path_factory)}/assent.db"
    else:
        database = request.getfixturevalue("postgres_url")
    with running(dev_server(database, config=PROJECT)) as started:
        yield started


def test_custom_routes_replace_no_own_route_and_refuse_other_origins(custom: ServerProcess) -> None:
    with httpx.Client(base_url=custom.url) as http:
        assert http.get("/weather").json() == {"sunny": True}
        assert http.get("/ok").json() == {"ok": True, "services": {}}
        assert http.get("/nowhere").status_code == 404
        assert http.get("/weather", headers={"Origin": "https://elsewhere.example"}).status_code == 401
