"""`assent insights` on a database, beside which no server runs."""

from tests.cli.conftest import Assent

HERE = ("--database", "sqlite:///.assent/assent.db")


def test_empty_inbox_gives_an_empty_report(assent: Assent) -> None:
    assert assent("db", "upgrade", *HERE).code == 0
    told = assent("insights", "--days", "7", *HERE).out
    assert "7 days: 0 asked, 0 decided, 0 open" in told
    assert "median -" in told
    assert assent("insights", *HERE, "--json").json["days"] == 30
    assert assent("insights", "--days", "8", *HERE).code == 2
