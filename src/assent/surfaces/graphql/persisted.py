"""Automatic persisted queries: a client sends the SHA-256 of a document, and the document itself only when this process
does not have it."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

from assent.errors import Invalid

_MOST = 1000


class PersistedQueries:
    """The latest documents of all tenants, each visible to its own tenant only."""

    def __init__(self) -> None:
        self._documents = OrderedDict[tuple[str, str], str]()

    def query(self, tenant: str, query: str | None, named: Any) -> str:
        """The document to execute. `named` is the request's `extensions.persistedQuery`."""
        if named is None:
            if query is None:
                raise Invalid("query: a document is needed")
            return query
        digest = named.get("sha256Hash") if isinstance(named, dict) else None
        if not isinstance(digest, str) or named.get("version", 1) != 1:
            raise Invalid("extensions.persistedQuery: version 1 and sha256Hash are needed")
        if query is None:
            return self._known(tenant, digest)
        if hashlib.sha256(query.encode()).hexdigest() != digest:
            raise Invalid("extensions.persistedQuery: sha256Hash is not the hash of the query")
        return query

    def keep(self, tenant: str, query: str) -> None:
        """Keeps a document that is within the limits."""
        name = (tenant, hashlib.sha256(query.encode()).hexdigest())
        self._documents[name] = query
        self._documents.move_to_end(name)
        while len(self._documents) > _MOST:
            self._documents.popitem(last=False)

    def _known(self, tenant: str, digest: str) -> str:
        query = self._documents.get((tenant, digest))
        if query is None:
            # the message is the protocol's: clients then send the document
            raise Invalid("PersistedQueryNotFound", hint="send the query with its hash")
        self._documents.move_to_end((tenant, digest))
        return query
