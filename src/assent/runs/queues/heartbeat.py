"""Sends the heartbeat of a worker from a separate thread.

Otherwise a worker whose node blocks the event loop for longer than the lease would count as dead, and another worker
would take over its run while it continues.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import psycopg
from procrastinate.sql import queries

from assent.runs.queues.jobs import conninfo, options

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
        """Connects before there is work: under load no connection may be left, and a worker without a heartbeat loses
        its runs."""
        while True:
            try:
                self._beat()
            except psycopg.Error as error:
                log.warning("send heartbeat failed", extra={"reason": str(error)})
                self._disconnect()
            if self._stopped.wait(BEAT_SECONDS):
                return self._disconnect()

    def _beat(self) -> None:
        connection, worker_id = self._connected(), self._worker_id()
        if worker_id is not None:
            connection.execute(queries["update_heartbeat"], {"worker_id": worker_id})

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = psycopg.connect(
                conninfo(self._url),
                options=options(self._url),
                autocommit=True,
                connect_timeout=2,
                application_name="assent-queue",
            )
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
