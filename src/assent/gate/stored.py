"""The gate's records in a store: each step is one durable transaction, in the server or over a local file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from itertools import chain, count
from typing import Any, TypeVar

from assent.gate.records import Answered, Keeper, Look, Pending, Questions, Records
from assent.kernel.canonical import Json
from assent.kernel.store.transaction import Tx
from assent.review.decisions.consequences import heard_after
from assent.review.model import grants as model
from assent.review.model.grants import Call, Grant, Passage
from assent.review.rows import gate, grants
from assent.review.rows.attempts import Maker
from assent.review.rows.gate import Judged, Pause
from assent.threads.rows import answers

T = TypeVar("T")


class Book:
    """The questions of a gate and their answers, as its server keeps them: with the runs that ask and continue."""

    def answer(self, tx: Tx, call: Call, interrupt_id: str) -> Json:
        """The recorded answer to this question of the gate; None without one."""
        given = answers.standing(tx, call.thread_id, interrupt_id)
        return given and given.value

    def record_question(self, tx: Tx, pending: Pending) -> None:
        """A server creates items from interrupted runs."""

    def record_use(self, tx: Tx, thread_id: str, interrupt_ids: Sequence[str]) -> None:
        """A server derives from its runs which answers were used."""


class StoreKeeper(Keeper):
    attempt: Maker = None
    """The attempt that makes the calls; its writes are valid only while it owns them."""

    book = Book()

    @abstractmethod
    def run(self, function: Callable[[Tx], T]) -> T:
        """Runs a store function in one durable transaction."""

    @abstractmethod
    def arun(self, function: Callable[[Tx], T]) -> Coroutine[Any, Any, T]: ...

    def perform(self, step: Callable[[Records], T]) -> T:
        return self.run(lambda tx: step(StoredRecords(tx, self.book, self.attempt)))

    def aperform(self, step: Callable[[Records], T]) -> Coroutine[Any, Any, T]:
        return self.arun(lambda tx: step(StoredRecords(tx, self.book, self.attempt)))


class StoredRecords(Records):
    def __init__(self, tx: Tx, book: Book, attempt: Maker) -> None:
        self._tx = tx
        self._book = book
        self._attempt = attempt

    def covers(self, grant: Grant, call: Call) -> bool:
        return model.covers(grant, self._tx.tenant, call)

    def look(self, call: Call, positions: Sequence[str]) -> Look:
        return Look(self.judge(call), grants.was_begun(self._tx, call), self._questions(call, positions))

    def _questions(self, call: Call, positions: Sequence[str]) -> Questions:
        from assent.gate.task import question_id  # LangGraph is slow to import, and a server sets its mode first

        by_position = gate.asked(self._tx, call, positions)
        earlier = [id for id, question in by_position.items() if question.about_call]
        answered = dict[str, Json]()
        for next_id in chain(earlier, map(partial(question_id, call), count())):
            answer = self._book.answer(self._tx, call, next_id)
            if answer is None:
                break
            answered[next_id] = answer
        questions = gate.asked(self._tx, call, [*answered, next_id])
        decided = {id for id, question in questions.items() if question.decided}
        items = {question.item_id for question in questions.values()}
        exist = bool(questions or answered)
        return Questions(answered, frozenset(decided), frozenset(items), next_id, exist, tuple(by_position))

    def judge(self, call: Call) -> Judged:
        return gate.judged(self._tx, call.tool, call.args, call.graph, self._attempt)

    def use_standing(self, call: Call) -> bool:
        return gate.stands_approved(self._tx, call.tool, call.args, call.graph, self._attempt)

    def consume(self, call: Call, answered: Answered) -> Passage:
        """With the comments that follow the call's result."""
        return heard_after(self._tx, gate.consume(self._tx, call, self._attempt, answered.includes))

    def recall(self, call: Call, of_items: Collection[str] | None) -> Passage:
        return grants.recall(self._tx, call, self._attempt, of_items)

    def give_back(self, passage: Passage) -> None:
        gate.give_back(self._tx, passage, self._attempt)

    def pause(self, grant_id: str, paused: Pause) -> None:
        gate.pause(self._tx, grant_id, paused, self._attempt)

    def finish(self, grant_id: str, result: Json, *, failed: bool) -> None:
        grants.finish(self._tx, grant_id, result, self._attempt, failed=failed)

    def announce_doubt(self, grant_id: str, interrupt_id: str) -> None:
        gate.announce_doubt(self._tx, grant_id, interrupt_id, self._attempt)

    def ask(self, pending: Pending) -> tuple[Json, Json]:
        self._book.record_question(self._tx, pending)
        return pending.value, pending.response_schema

    def mark_used(self, thread_id: str, interrupt_ids: Sequence[str]) -> None:
        self._book.record_use(self._tx, thread_id, interrupt_ids)
