"""TCP servers of the tests' own, on the event loop of the test. Their connections end with them: one that is left open
is a warning about an unclosed socket, in whatever test runs when the garbage collector finds it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(
    serve: Serve, host: str = "127.0.0.1", *, secured: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serves each connection by `serve`, then closes it; the port."""
    open_now: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    ended = False

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if ended:  # accepted just before
            return writer.transport.abort()
        task = asyncio.current_task()
        assert task is not None
        open_now[task] = writer
        try:
            with suppress(asyncio.CancelledError):  # by `_end`
                await serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):  # of a caller that is gone
                await writer.wait_closed()
            del open_now[task]

    server = await asyncio.start_server(handle, host, 0, ssl=secured)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        await _stop_accepting(server)
        ended = True
        server.close()
        await _end(open_now)


async def _stop_accepting(server: asyncio.Server) -> None:
    """A connection that is accepted while its server closes never gets a transport, and stays open."""
    for listener in server.sockets:
        asyncio.get_running_loop().remove_reader(listener.fileno())
    for _ in range(20):
        await asyncio.sleep(0)


async def _end(connections: dict[asyncio.Task[None], asyncio.StreamWriter]) -> None:
    left = dict(connections)
    for task, writer in left.items():
        writer.transport.abort()
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.sleep(0)  # in which the sockets are closed
