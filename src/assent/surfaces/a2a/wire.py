"""The two forms of A2A on the wire. The other modules build the form of version 1.0; clients of 0.3 get it converted.

Version 1.0 wraps a result by its kind (`{"statusUpdate": …}`) and writes enumerations in capitals; 0.3 has the kind as
a field, and the last event of a stream says that it is the last.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

METHODS = {
    "message/send": "SendMessage",
    "message/stream": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
}
"""The names of 0.3, and their names in 1.0."""

PUSH_METHODS = frozenset(f"tasks/pushNotificationConfig/{verb}" for verb in ("set", "get", "list", "delete")) | {
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
}
"""Not served: the card says so, and these have an error of their own."""

SUBMITTED = "TASK_STATE_SUBMITTED"
WORKING = "TASK_STATE_WORKING"
COMPLETED = "TASK_STATE_COMPLETED"
FAILED = "TASK_STATE_FAILED"
CANCELED = "TASK_STATE_CANCELED"
INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELED})
USER, AGENT = "ROLE_USER", "ROLE_AGENT"


def role_of(text: Any) -> str | None:
    """The role in the form of 1.0."""
    return {"user": USER, "agent": AGENT, USER: USER, AGENT: AGENT}.get(text) if isinstance(text, str) else None


def legacy(result: Json) -> Json:
    """A result, or an event of a stream, in the form of 0.3."""
    if "task" in result:
        return legacy_task(result["task"])
    if "statusUpdate" in result:
        update = result["statusUpdate"]
        status = _status(update["status"])
        final = update["status"]["state"] not in (SUBMITTED, WORKING)
        return {**update, "kind": "status-update", "status": status, "final": final}
    update = result["artifactUpdate"]
    return {**update, "kind": "artifact-update", "artifact": _artifact(update["artifact"])}


def legacy_task(task: Json) -> Json:
    told = {**task, "kind": "task", "status": _status(task["status"])}
    if "artifacts" in task:
        told["artifacts"] = [_artifact(artifact) for artifact in task["artifacts"]]
    if "history" in task:
        told["history"] = [_message(message) for message in task["history"]]
    return told


def _status(status: Json) -> Json:
    state = status["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    return {**status, "state": state, **({"message": _message(status["message"])} if "message" in status else {})}


def _message(message: Json) -> Json:
    role = message["role"].removeprefix("ROLE_").lower()
    return {**message, "kind": "message", "role": role, "parts": [_part(part) for part in message["parts"]]}


def _artifact(artifact: Json) -> Json:
    return {**artifact, "parts": [_part(part) for part in artifact["parts"]]}


def _part(part: Json) -> Json:
    if "text" in part:
        return {**part, "kind": "text"}
    if "data" in part:
        return {**part, "kind": "data"}
    names = {"raw": "bytes", "url": "uri", "mediaType": "mimeType", "filename": "name"}
    return {"kind": "file", "file": {names[name]: value for name, value in part.items() if name in names}}
