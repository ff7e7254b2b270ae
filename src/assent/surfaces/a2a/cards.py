"""The card of an agent: what it is called, what it takes, and where it is reached."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from assent.threads.model.assistants import Assistant

Json = dict[str, Any]
MODES = ("application/json", "text/plain")


def card(assistant: Assistant, schema: Json, base: str) -> Json:
    """For clients of 1.0 (`supportedInterfaces`) and of 0.3 (`url`). `schema`: of the graph's input."""
    url, description = f"{base}/a2a/{assistant.id}", assistant.description or f"{assistant.name} assistant"
    inputs, outputs = _modes(assistant, "input_modes"), _modes(assistant, "output_modes")
    properties = schema.get("properties") or {}
    takes = {
        "required": schema.get("required", []),
        "properties": sorted(properties),
        "supportsA2A": "messages" in properties,
    }
    skill = {
        "id": f"{assistant.id}-main",
        "name": f"{assistant.name} Capabilities",
        "description": description,
        "tags": ["assistant", "langgraph"],
        "examples": [],
        "inputModes": inputs,
        "outputModes": outputs,
        "metadata": {"inputSchema": takes},
    }
    return {
        "name": assistant.name,
        "description": description,
        "url": url,
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": wanted} for wanted in ("1.0", "0.3")
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "stateTransitionHistory": False},
        "defaultInputModes": inputs,
        "defaultOutputModes": outputs,
        "skills": [skill],
        "version": version("assent"),
    }


def _modes(assistant: Assistant, name: str) -> list[str]:
    """The media types that the assistant's metadata names (`{"a2a": {"input_modes": […]}}`), or the usual ones."""
    section = assistant.metadata.get("a2a")
    named = section.get(name) if isinstance(section, dict) else None
    usable = isinstance(named, list) and named and all(isinstance(mode, str) and mode.strip() for mode in named)
    return [mode.strip() for mode in named] if usable and isinstance(named, list) else list(MODES)
