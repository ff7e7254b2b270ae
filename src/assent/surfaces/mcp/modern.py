"""MCP 2026-07-28: no handshake. Every request names its version and its client's capabilities, and a call that needs
an answer returns what it asks; the client sends the same call again with the answers.

Only questions that the caller may answer are asked this way. Nobody decides here: a call that waits for a person's
decision returns the same result as in the older versions.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request

from assent.runs.calls import Ended, Pause
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, Message, RpcError

Json = dict[str, Any]
VERSION = "2026-07-28"
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_CACHED = {"ttlMs": 0, "cacheScope": "private"}
_PLAIN = ("string", "number", "integer", "boolean")
_ANSWER = "answer"


def speaks(request: Request, message: Message, older: tuple[str, ...]) -> bool:
    """Whether the request is one of this version. Refused if its version is unknown, or named in two ways."""
    named = _meta(message).get(_VERSION_KEY)
    header = request.headers.get("mcp-protocol-version")
    if named is None:
        return False
    if header is not None and header != named:
        raise RpcError(HEADER_MISMATCH, f"the header names the version {header}, the request {named}")
    if named != VERSION:
        supported = {"supported": [VERSION, *older], "requested": str(named)}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)
    return True


def discovered(server: Json, older: tuple[str, ...]) -> Json:
    """The answer to `server/discover`, from that of the handshake."""
    described = {name: server[name] for name in ("capabilities", "instructions")}
    return {
        "supportedVersions": [VERSION, *older],
        **described,
        **_CACHED,
        "_meta": {_SERVER_KEY: server["serverInfo"]},
    }


def complete(method: str | None, result: Json) -> Json:
    """A result with the fields that this version adds."""
    return {"resultType": "complete", **result, **(_CACHED if method == "tools/list" else {})}


def asked(message: Message, ended: Ended) -> Json | None:
    """The questions for the client, if it can ask its user and every question has the form of a short form."""
    capabilities = _meta(message).get(_CAPABILITIES_KEY)
    if ended.pause is None or not isinstance(capabilities, dict) or "elicitation" not in capabilities:
        return None
    requests = _requests(ended.pause)
    return (
        {"resultType": "input_required", "inputRequests": requests, "requestState": ended.thread_id}
        if requests
        else None
    )


def repeated(params: Json) -> tuple[str, Json] | None:
    """The thread and the answers of a call that is sent again; answers that the user declined are left out."""
    state, responses = params.get("requestState"), params.get("inputResponses")
    if state is None:
        return None
    if not isinstance(state, str) or not isinstance(responses, dict):
        raise RpcError(INVALID_PARAMS, "requestState must be the one of the result, inputResponses an object")
    return state, {name: response for name, response in responses.items() if _accepted(response)}


def answers(pause: Pause, responses: Json) -> Json:
    """Answers by question: the whole form, or its only field where the question has no schema."""
    forms = {question["id"]: question.get("response_schema") for question in pause.questions}
    return {
        name: response["content"] if forms.get(name) else response["content"].get(_ANSWER)
        for name, response in responses.items()
    }


def _accepted(response: Any) -> bool:
    return (
        isinstance(response, dict) and response.get("action") == "accept" and isinstance(response.get("content"), dict)
    )


def _requests(pause: Pause) -> Json:
    if pause.items or not pause.questions:
        return {}
    forms = {question["id"]: _form(question) for question in pause.questions}
    if not all(forms.values()):
        return {}
    return {name: {"method": "elicitation/create", "params": form} for name, form in forms.items()}


def _form(question: Json) -> Json | None:
    value, schema = question.get("value"), question.get("response_schema")
    text = value if isinstance(value, str) else (value or {}).get("question") if isinstance(value, dict) else None
    if schema is None and isinstance(text, str):
        fields = {_ANSWER: {"type": "string", "title": "Answer"}}
        return _elicited(text, {"type": "object", "properties": fields, "required": [_ANSWER]})
    if schema is not None and _is_flat(schema):
        kept = {name: schema[name] for name in ("type", "properties", "required") if name in schema}
        return _elicited(text or json.dumps(value, ensure_ascii=False), kept)
    return None


def _elicited(text: str, schema: Json) -> Json:
    return {"mode": "form", "message": text, "requestedSchema": schema}


def _is_flat(schema: Json) -> bool:
    """Forms of this protocol have fields without structure."""
    fields = schema.get("properties")
    return (
        schema.get("type") == "object"
        and isinstance(fields, dict)
        and bool(fields)
        and all(isinstance(field, dict) and field.get("type") in _PLAIN for field in fields.values())
    )


def _meta(message: Message) -> Json:
    meta = message.params.get("_meta")
    return meta if isinstance(meta, dict) else {}
