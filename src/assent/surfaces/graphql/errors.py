"""Errors in GraphQL: those of the use cases, with the same codes and facts as in REST, in `extensions`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from graphql import GraphQLError

from assent import logs
from assent.errors import AssentError, Invalid

log = logging.getLogger(__name__)


def translate(errors: Sequence[GraphQLError]) -> None:
    """Completes errors in place, because strawberry's transports format them themselves."""
    for error in errors:
        original = error.original_error
        if isinstance(original, AssentError):
            error.message, error.extensions = original.message, facts(original)
        elif original is None or isinstance(original, GraphQLError):
            error.extensions = {"code": Invalid.code, "status": Invalid.status}
        else:
            log.error("resolve GraphQL field failed", exc_info=original, extra={"path": error.path})
            error.message = f"internal error; search the log for {logs.request_id.get()}"
            error.extensions = {"code": AssentError.code, "status": AssentError.status}


def facts(error: AssentError) -> dict[str, Any]:
    hint = {"hint": error.hint} if error.hint else {}
    return {"code": error.code, "status": error.status, **hint, **error.extra}


def refused(error: AssentError) -> dict[str, Any]:
    """The response for a document that is not executed."""
    return {"errors": [{"message": error.message, "extensions": facts(error)}]}
