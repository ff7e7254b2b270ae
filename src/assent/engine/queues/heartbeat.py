"""Proves that a worker is alive, from a thread of its own.

A node that blocks the event loop for longer than the lease would otherwise look dead, and its run be taken over while
it goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import psycopg
from procrastinate.sql import queries

from assent.engine.queues.jobs import conninfo, options

BEAT_SECONDS = 1.0

log = logging.getLogger(__name__)


class Heartbeat:
    def __init__(self, url: str, worker_id: Callable[[], int | None]) -> None:
        self._url = url
        self._worker_id = worker_id
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="assent-heartbeat", daemon=True)
        self._connection: psycopg.Connection | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            try:
                self._beat()
            except psycopg.Error as error:
                log.warning("a heartbeat was missed", extra={"reason": str(error)})
                self._disconnect()
        self._disconnect()

    def _beat(self) -> None:
        worker_id = self._worker_id()
        if worker_id is None:
            return
        if self._connection is None:
            self._connection = psycopg.connect(
                conninfo(self._url), options=options(self._url), autocommit=True, connect_timeout=2
            )
        self._connection.execute(queries["update_heartbeat"], {"worker_id": worker_id})

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
