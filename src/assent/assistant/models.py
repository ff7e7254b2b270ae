"""Chat models by name: the offline planner, or any provider's through LangChain.

Model, URL and key belong together: with `model_url` the model is one of that server, and no vendor's key is sent there.
A provider's package is imported only when its model is named, so none is needed to start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assent.errors import ConfigError
from assent.settings import OFFLINE, AssistantSettings, environment, provider_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_PACKAGES = {"openai": "langchain-openai", "google_genai": "langchain-google-genai", "anthropic": "langchain-anthropic"}
_ANTHROPIC_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Its package does not look for them before the first request."""
_SET_KEY = "set the key of its provider in the environment or in .env, such as OPENAI_API_KEY=…"
_PATIENCE = {"timeout": 60, "max_retries": 1}
"""A person waits for the answer, so errors are reported soon; the thread can be continued."""
_OWN_WAYS: Mapping[str, dict[str, Any]] = {
    "ollama": {"client_kwargs": {"timeout": 60}},  # it never retries
    "bedrock": {},
    "bedrock_converse": {},
    "huggingface": {},
}


def router_model(settings: AssistantSettings) -> BaseChatModel:
    return create_model(settings.router_model or settings.model, settings)


def executor_model(settings: AssistantSettings) -> BaseChatModel:
    return create_model(settings.executor_model or settings.model, settings)


def require_models(settings: AssistantSettings) -> None:
    """Reports a missing package, a wrong name or a missing key at the start, not at the first request."""
    for name in {settings.model, settings.router_model, settings.executor_model} - {None, OFFLINE}:
        create_model(str(name), settings)
        if provider_of(str(name)) == "anthropic" and not any(map(environment().get, _ANTHROPIC_KEYS)):
            raise ConfigError(f"{name} needs a key: {_ANTHROPIC_KEYS[0]} is not set", hint=_SET_KEY)


def create_model(name: str, settings: AssistantSettings) -> BaseChatModel:
    """`offline`, or a name for `init_chat_model`: `provider:model`; with `model_url`, also the model's own name."""
    if name == OFFLINE:
        from assent.assistant.planner.model import OfflinePlanner

        return OfflinePlanner()
    from langchain.chat_models import init_chat_model

    try:
        model: BaseChatModel = init_chat_model(_qualified(name, settings), **_options(name, settings))
    except ImportError as error:
        raise ConfigError(f"{name} needs a package that is not installed", hint=_install(name)) from error
    except ValueError as error:
        raise ConfigError(f"{name!r} is not a model: {_first_line(error)}", hint="such as openai:gpt-5") from None
    except Exception as error:  # noqa: BLE001 - providers raise any type, above all for a missing key
        raise ConfigError(f"{name} cannot be used: {_first_line(error)}", hint=_SET_KEY) from None
    return model


def _qualified(name: str, settings: AssistantSettings) -> str:
    """LangChain would guess the provider of a bare name, and send the request to that vendor."""
    return f"openai:{name}" if settings.model_url and ":" not in name else name


def _options(name: str, settings: AssistantSettings) -> dict[str, Any]:
    provider = provider_of(_qualified(name, settings))
    return {**_OWN_WAYS.get(provider, _PATIENCE), **_access(provider, settings)}


def _access(provider: str, settings: AssistantSettings) -> dict[str, Any]:
    if settings.model_url:
        return {"base_url": settings.model_url, **_own_key(provider, settings)}
    if provider == "openai" and settings.openai_api_key:
        return {"api_key": settings.openai_api_key.get_secret_value()}
    if provider == "google_genai" and settings.google_api_key:
        return {"google_api_key": settings.google_api_key.get_secret_value()}
    return {}


def _own_key(provider: str, settings: AssistantSettings) -> dict[str, Any]:
    """The key of the server at `model_url`. OpenAI's client requires one, and would else send OPENAI_API_KEY."""
    if provider != "openai":
        return {}
    return {"api_key": settings.model_key.get_secret_value() if settings.model_key else "none"}


def _install(name: str) -> str:
    provider = name.partition(":")[0]
    package = _PACKAGES.get(provider, f"langchain-{provider}")
    return f"pip install {package}, or in a clone: $(tools/find-uv) pip install --python .venv/bin/python {package}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
