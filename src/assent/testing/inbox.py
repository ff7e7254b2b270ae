"""A local inbox for tests: in memory, with one line per decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assent.gate.inbox import LocalInbox, LocalItem
from assent.gate.questions import Asking
from assent.gate.records import Pending
from assent.kernel.ids import new_id
from assent.kernel.store.local import MEMORY
from assent.review.model.grants import Call
from assent.review.model.policies import Policy
from assent.review.rows import policies
from assent.testing.clock import Clock


class Inbox(LocalInbox):
    """Give it to `ApprovalMiddleware(inbox=…)` or `@gated(inbox=…)`. `by` is the person who decides."""

    def __init__(self, path: str | Path = MEMORY, *, by: str = "reviewer") -> None:
        super().__init__(path)
        self.by = by
        self.clock = Clock(self._store)

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; data in memory is lost."""
        self._store.close()

    def use(self, policy: Policy) -> None:
        """Puts a policy in force."""
        self.run(lambda tx: policies.put(tx, policy, source="test", actor="test"))

    def ask(self, call: Call, description: str = "") -> LocalItem:
        """An item for this call, made as the gate makes it, without a graph."""
        value, schema = Asking(description).question(call, None)
        self.perform(lambda records: records.ask(Pending(call.thread_id, new_id(), value, schema)))
        return next(item for item in reversed(self.items()) if (item.tool, item.args) == (call.tool, call.args))

    def waiting(self, tool: str | None = None) -> LocalItem:
        """The only item that waits, or the only one of this tool."""
        items = [item for item in self.items() if tool in (None, item.tool)]
        if len(items) != 1:
            raise AssertionError(f"one item should wait, not {len(items)}: {[item.tool for item in items]}")
        return items[0]

    def approve(self, item: LocalItem | None = None) -> LocalItem:
        return self._decide("approve", item)

    def reject(self, message: str | None = None, item: LocalItem | None = None) -> LocalItem:
        return self._decide("reject", item, message=message)

    def respond(self, message: str, item: LocalItem | None = None) -> LocalItem:
        return self._decide("respond", item, message=message)

    def edit(self, item: LocalItem | None = None, /, **args: Any) -> LocalItem:
        """Approves the call with these arguments changed."""
        seen = item or self.waiting()
        before = seen.args if isinstance(seen.args, dict) else {}
        return self._decide("edit", seen, args={**before, **args})

    def _decide(self, verb: Any, item: LocalItem | None, **said: Any) -> LocalItem:
        seen = item or self.waiting()
        return self.decide(seen.id, verb, revision=seen.revision, hash=seen.hash, by=self.by, **said)
