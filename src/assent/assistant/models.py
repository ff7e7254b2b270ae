"""Chat models by name: the offline planner, or any provider's through LangChain.

`openai:…` with `model_url` is any server with OpenAI's protocol. A provider's package is imported only when its model
is named, so none is needed to start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assent.errors import ConfigError
from assent.settings import OFFLINE, AssistantSettings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_PACKAGES = {"openai": "langchain-openai", "google_genai": "langchain-google-genai", "anthropic": "langchain-anthropic"}
_PATIENCE = {"timeout": 60, "max_retries": 1}
"""A person waits for the answer, so errors are reported soon; the thread can be continued."""
_OWN_WAYS: Mapping[str, dict[str, Any]] = {
    "ollama": {"client_kwargs": {"timeout": 60}},  # it never retries
    "bedrock": {},
    "bedrock_converse": {},
    "huggingface": {},
}


class ModelFailed(RuntimeError):
    """The call of the model failed. The details may contain secrets, so they are only in the log."""


def router_model(settings: AssistantSettings) -> BaseChatModel:
    return create_model(settings.router_model or settings.model, settings)


def executor_model(settings: AssistantSettings) -> BaseChatModel:
    return create_model(settings.executor_model or settings.model, settings)


def create_model(name: str, settings: AssistantSettings) -> BaseChatModel:
    """`offline`, or a name for `init_chat_model`: `provider:model`."""
    if name == OFFLINE:
        from assent.assistant.planner.model import OfflinePlanner

        return OfflinePlanner()
    from langchain.chat_models import init_chat_model

    try:
        model: BaseChatModel = init_chat_model(name, **_options(name, settings))
    except ImportError as error:
        raise ConfigError(f"{name} needs a package that is not installed", hint=_install(name)) from error
    except ValueError as error:
        raise ConfigError(f"{name!r} is not a model: {_first_line(error)}", hint="such as openai:gpt-5") from None
    return model


def _options(name: str, settings: AssistantSettings) -> dict[str, Any]:
    provider = name.partition(":")[0]
    return {**_OWN_WAYS.get(provider, _PATIENCE), **_access(provider, settings)}


def _access(provider: str, settings: AssistantSettings) -> dict[str, Any]:
    if provider == "openai":
        return _openai(settings)
    if provider == "google_genai" and settings.google_api_key:
        return {"google_api_key": settings.google_api_key.get_secret_value()}
    return {"base_url": settings.model_url} if settings.model_url and provider == "ollama" else {}


def _openai(settings: AssistantSettings) -> dict[str, Any]:
    """Self-hosted servers often need no key, but the client requires one."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    if settings.model_url:
        return {"base_url": settings.model_url, "api_key": key or "none"}
    return {"api_key": key} if key else {}


def _install(name: str) -> str:
    provider = name.partition(":")[0]
    return f"pip install {_PACKAGES.get(provider, f'langchain-{provider}')}"


def _first_line(error: ValueError) -> str:
    return str(error).partition("\n")[0]
