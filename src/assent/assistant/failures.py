"""The errors for which a request fails, and what people read about them.

A run keeps the name of its error's class. The details may contain secrets, so they are only in the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeVar

from assent.errors import ConfigError

Error = TypeVar("Error", bound=Exception)

UNKNOWN = "its model, or a server that it needs, failed"
_MISCONFIGURED = "its configuration is wrong"


class Failed(RuntimeError):
    """`public` is the reason for people, in every class its own."""

    public: ClassVar[str] = UNKNOWN


class ModelFailed(Failed):
    """The call of the model failed. The details may contain secrets, so they are only in the log."""

    public = "its model failed"


class UnusableReply(ModelFailed):
    """The model replied, but not in the form that the assistant needs."""

    public = "its model did not reply in the required form"


class McpFailed(Failed):
    """The MCP server cannot be reached. Not `Unavailable`, on which runs wait for the database."""

    public = "the MCP server that it needs does not answer"


class McpRefused(McpFailed):
    """The MCP server does not accept the credentials."""

    public = "the MCP server that it needs refused its credentials"


class LoginRequired(McpRefused):
    """The MCP server wants a person to sign in. The call was not made."""

    public = "the MCP server that it needs wants a person to sign in"


class McpLost(McpFailed):
    """The connection was lost after a call was sent: whether the call took effect is unknown."""

    public = "the MCP server that it needs was lost in the middle of a call"


class McpTimeout(McpLost):
    """The server did not finish the call in time."""

    public = "the MCP server that it needs did not finish a call in time"


def sentences() -> dict[str, str]:
    """Messages for people, by the names of the classes."""
    configuration = dict.fromkeys(names_of(ConfigError), _MISCONFIGURED)
    return configuration | {kind.__name__: kind.public for kind in _with_subclasses(Failed)}


def names_of(kind: type[Exception]) -> frozenset[str]:
    """The names under which runs keep errors of this class."""
    return frozenset(known.__name__ for known in _with_subclasses(kind))


def _with_subclasses(kind: type[Error]) -> Iterator[type[Error]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _with_subclasses(below)
