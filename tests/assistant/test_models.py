"""Models by name, over HTTP against a server that speaks OpenAI's protocol, and the traces of their runs."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from assent import LocalInbox
from assent.assistant import tracing
from assent.assistant.failures import ModelFailed
from assent.assistant.graph import make_graph
from assent.assistant.models import create_model, executor_model, require_models, router_model
from assent.assistant.nodes import Nodes
from assent.assistant.planner.model import OfflinePlanner
from assent.assistant.tools import CLARIFICATION
from assent.errors import ConfigError
from assent.gate.keeper import using_keeper
from assent.settings import AssistantSettings, read_assistant_settings
from tests.assistant.calendars import served
from tests.assistant.desk import Aviary, Desk, client_of
from tests.missing import missing


def require(module: str, package: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        missing(f"{package}: pip install {package}")


class Provider:
    """Forty lines of OpenAI: says what the test wrote down, whole or word by word, or fails."""

    def __init__(self) -> None:
        self.script: list[dict[str, Any]] = []
        self.failing = 0
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.app = Starlette(routes=[Route("/v1/chat/completions", self.complete, methods=["POST"])])

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        self.keys.append(request.headers.get("authorization", ""))
        if self.failing:
            self.failing -= 1
            return JSONResponse({"error": {"message": "overloaded", "type": "server_error"}}, 503)
        message = self.script.pop(0) if self.script else {"content": "all done"}
        if body.get("stream"):
            return StreamingResponse(self._streamed(message), media_type="text/event-stream")
        whole = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return JSONResponse({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [whole]})

    def _streamed(self, message: dict[str, Any]) -> Iterator[str]:
        deltas: list[dict[str, Any]] = [{"content": f"{word} "} for word in (message.get("content") or "").split()]
        deltas += [
            {"tool_calls": [{**tool_call, "index": n}]} for n, tool_call in enumerate(message.get("tool_calls") or ())
        ]
        for delta in deltas:
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            part = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            yield f"data: {json.dumps(part)}\n\n"
        yield "data: [DONE]\n\n"


def uses(name: str, /, **args: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(args)}
    return {"content": None, "tool_calls": [{"id": f"id_{name}", "type": "function", "function": function}]}


@pytest.fixture
def provider() -> Provider:
    require("langchain_openai", "langchain-openai")
    return Provider()


def settings_for(address: str, **more: Any) -> AssistantSettings:
    return AssistantSettings(model="openai:any", model_url=f"{address}/v1", **more)


class TestNames:
    def test_the_offline_planner_is_the_default(self) -> None:
        assert isinstance(router_model(AssistantSettings()), OfflinePlanner)
        assert isinstance(executor_model(AssistantSettings()), OfflinePlanner)

    @pytest.mark.parametrize("name", ["mistralai:x", "cohere:x"])
    def test_missing_package_of_a_model_is_named(self, name: str) -> None:
        with pytest.raises(ConfigError) as said:
            create_model(name, AssistantSettings())
        package = f"langchain-{name.partition(':')[0]}"
        assert said.value.hint is not None
        assert said.value.hint.startswith(f"pip install {package}, or in a clone: ")

    @pytest.mark.parametrize("name", ["openai:x", "anthropic:x", "google_genai:x", "mistralai:x", "gpt-5"])
    def test_every_model_has_a_timeout(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        given: dict[str, Any] = {}
        monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **options: given.update(options))
        create_model(name, AssistantSettings())
        assert (given["timeout"], given["max_retries"]) == (60, 1)

    def test_local_model_has_a_timeout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given: dict[str, Any] = {}
        monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **options: given.update(options))
        create_model("ollama:x", AssistantSettings())
        assert given == {"client_kwargs": {"timeout": 60}}

    def test_unknown_model_name_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="is not a model"):
            create_model("whatever", AssistantSettings())

    @pytest.mark.parametrize(
        ("name", "key"), [("openai:gpt-5", "OPENAI_API_KEY"), ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY")]
    )
    def test_missing_key_stops_the_start(self, name: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        package = f"langchain-{name.partition(':')[0]}"
        require(package.replace("-", "_"), package)
        for variable in (key, "OPENAI_ADMIN_KEY", "ANTHROPIC_AUTH_TOKEN"):
            monkeypatch.delenv(variable, raising=False)
        with pytest.raises(ConfigError, match=key) as refused:
            require_models(AssistantSettings(model=name))
        assert refused.value.hint is not None
        assert ".env" in refused.value.hint
        monkeypatch.setenv(key, "k")
        require_models(AssistantSettings(model=name))

    def test_each_node_may_have_its_own_model(self) -> None:
        settings = AssistantSettings(router_model="mistralai:small")
        assert isinstance(executor_model(settings), OfflinePlanner)
        with pytest.raises(ConfigError):
            router_model(settings)


class TestOwnServer:
    """Data for a server of the operator does not go to a vendor."""

    async def test_bare_model_name_is_requested_at_the_url(
        self, provider: Provider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-vendor")
        with served(provider.app, lifespan=False) as address:
            environment = {"ASSISTANT_MODEL": "gpt-4o", "ASSISTANT_MODEL_URL": f"{address}/v1"}
            model = executor_model(read_assistant_settings({**environment, "OPENAI_API_KEY": "sk-vendor"}))
            assert (await model.ainvoke("hello")).content == "all done"
        assert [asked["model"] for asked in provider.asked] == ["gpt-4o"]
        assert provider.keys == ["Bearer none"]

    @pytest.mark.parametrize("name", ["anthropic:claude", "google_genai:gemini", "llama3:8b"])
    @pytest.mark.parametrize("variable", ["ASSISTANT_MODEL", "ASSISTANT_ROUTER_MODEL"])
    def test_model_of_a_vendor_with_a_url_is_refused(self, name: str, variable: str) -> None:
        with pytest.raises(ConfigError, match=r"model_url \(from ASSISTANT_MODEL_URL\).*does not use it"):
            read_assistant_settings({variable: name, "ASSISTANT_MODEL_URL": "http://127.0.0.1:9/v1"})

    def test_missing_package_is_reported_at_the_start(self) -> None:
        with pytest.raises(ConfigError, match="needs a package"):
            require_models(AssistantSettings(executor_model="mistralai:small"))
        require_models(AssistantSettings())


class TestOverHttp:
    async def test_model_over_http_answers_streams_and_calls_tools(self, provider: Provider) -> None:
        with served(provider.app, lifespan=False) as address:
            model = create_model(
                "openai:any", settings_for(address, model_key=SecretStr("own-1"), openai_api_key=SecretStr("sk-vendor"))
            )
            assert (await model.ainvoke("hello")).content == "all done"
            provider.script.append({"content": "one two three"})
            parts = [chunk async for chunk in model.astream("hello")]
            assert len([part for part in parts if part.content]) == 3
            assert isinstance(parts[0], AIMessageChunk)
            provider.script.append(uses("request_clarification", question="Which?"))
            [made] = (await model.bind_tools([CLARIFICATION]).ainvoke("do it")).tool_calls
            assert (made["name"], made["args"]) == ("request_clarification", {"question": "Which?"})
        assert set(provider.keys) == {"Bearer own-1"}

    async def test_model_over_http_drives_the_graph(
        self, provider: Provider, aviary: Aviary, inbox: LocalInbox, folder: Path
    ) -> None:
        provider.script += [uses("AllowedTools", types=["birds"]), uses("feed", bird="tit")]
        with served(provider.app, lifespan=False) as address:
            model = create_model("openai:any", settings_for(address))
            there = Desk(folder / "gate.db", Nodes(model, model, client_of(aviary.server), inbox=inbox))
            asked = await there.say("feed the tit")
            assert [tool_call["tool_name"] for tool_call in asked["tool_calls"]] == ["feed"]
            assert await there.approve() is None
        assert aviary.done == [("feed", "tit")]
        assert there.messages[-1].content == "all done"
        offered = [tool["function"]["name"] for tool in provider.asked[1]["tools"]]
        assert (offered[0], "lift" in offered) == ("request_clarification", False)

    async def test_failing_model_leaves_the_thread_usable(
        self, provider: Provider, aviary: Aviary, inbox: LocalInbox, folder: Path
    ) -> None:
        provider.failing = 10
        with served(provider.app, lifespan=False) as address:
            model = create_model("openai:any", settings_for(address))
            there = Desk(folder / "gate.db", Nodes(model, model, client_of(aviary.server), inbox=inbox))
            with pytest.raises(ModelFailed, match="the model failed"):
                await there.say("feed the tit")
            provider.failing = 0
            provider.script += [uses("AllowedTools", types=[]), {"content": "back again"}]
            await there.say("and now?")
        assert there.messages[-1].content == "back again"


class Collector:
    """Takes traces in, and knows whether a trace is among them."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        routes = [Route(f"{path}/v1/traces", self.take, methods=["POST"]) for path in ("", "/api/public/otel")]
        self.app = Starlette(routes=routes)

    async def take(self, request: Request) -> Response:
        body = await request.body()
        self.bodies.append(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
        return Response(b"", media_type="application/x-protobuf")

    def has(self, trace_id: str) -> bool:
        return any(bytes.fromhex(trace_id) in body for body in self.bodies)


NOWHERE = "http://127.0.0.1:9"


class TestTraces:
    @pytest.mark.promise("ASST-39")
    def test_without_keys_there_are_no_tracing_callbacks(self) -> None:
        with tracing.traced(AssistantSettings(), "thread") as callbacks:
            assert callbacks == []

    @pytest.mark.promise("ASST-39")
    def test_missing_tracing_package_is_logged_once(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        for name in ("langfuse", "langfuse.langchain", "openinference.instrumentation.langchain"):
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setattr(tracing, "_missing", set())
        monkeypatch.setattr(tracing, "_providers", {})
        settings = AssistantSettings(
            langfuse_public_key=SecretStr("pk"), langfuse_secret_key=SecretStr("sk"), otlp_endpoint=NOWHERE
        )
        with caplog.at_level(logging.WARNING, logger=tracing.__name__):
            for _ in range(2):
                with tracing.traced(settings, "thread") as callbacks:
                    assert callbacks == []
        assert ["pip install langfuse" in message for message in caplog.messages] == [True, False]

    def test_shutdown_flushes_all_trace_hosts_concurrently(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Slow:
            def shutdown(self) -> None:
                time.sleep(10)

        monkeypatch.setattr(tracing, "_providers", {str(number): Slow() for number in range(3)})
        began = time.monotonic()
        tracing.stop()
        assert time.monotonic() - began < 4

    def test_all_runs_of_a_thread_are_one_trace(self) -> None:
        assert tracing.trace_id("a") == tracing.trace_id("a") != tracing.trace_id("b")
        assert len(bytes.fromhex(tracing.trace_id("a"))) == 16

    @pytest.mark.promise("ASST-39")
    async def test_langfuse_receives_the_traces(
        self, inbox: LocalInbox, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        require("langfuse", "langfuse")
        langfuse = importlib.import_module("langfuse")
        assert tracing.trace_id("t-1") == langfuse.Langfuse.create_trace_id(seed="t-1")
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-here")
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
        collector = Collector()
        with served(collector.app, lifespan=False) as address:
            monkeypatch.setenv("LANGFUSE_HOST", address)
            try:
                await self._runs(inbox, folder, monkeypatch)
            finally:
                await asyncio.to_thread(_stop, langfuse.get_client(public_key="pk-here"))
        assert collector.has(tracing.trace_id("t-1"))

    async def test_opentelemetry_receives_the_traces(
        self, inbox: LocalInbox, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        require("openinference.instrumentation.langchain", "openinference-instrumentation-langchain")
        collector = Collector()
        with served(collector.app, lifespan=False) as address:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
            try:
                await self._runs(inbox, folder, monkeypatch)
            finally:
                await asyncio.to_thread(_stop)
        assert collector.has(tracing.trace_id("t-1"))

    @pytest.mark.promise("ASST-39")
    async def test_unreachable_trace_hosts_do_not_break_or_delay_runs(
        self, inbox: LocalInbox, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        require("langfuse", "langfuse")
        require("openinference.instrumentation.langchain", "openinference-instrumentation-langchain")
        langfuse = importlib.import_module("langfuse")
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-nowhere")
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
        monkeypatch.setenv("LANGFUSE_HOST", NOWHERE)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", NOWHERE)
        try:
            await self._runs(inbox, folder, monkeypatch)
        finally:
            await asyncio.to_thread(_stop, langfuse.get_client(public_key="pk-nowhere"))
        trace = importlib.import_module("opentelemetry.trace")
        assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider), "what others trace is theirs"

    async def _runs(self, inbox: LocalInbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ASSISTANT_CALENDAR", str(folder / "calendar.db"))
        began = time.monotonic()
        config: Any = {"configurable": {"thread_id": "t-1"}}
        async with make_graph(config) as graph:
            graph.checkpointer = InMemorySaver()
            with using_keeper(inbox):
                result = await graph.ainvoke({"messages": [("user", "what is in my calendar tomorrow?")]}, config)
        assert result["messages"][-1].text
        assert time.monotonic() - began < 60


def _stop(langfuse: Any = None) -> None:
    """So that no thread goes on sending, and complaining, in the tests that follow."""
    if langfuse is not None:
        langfuse.shutdown()
    importlib.import_module("openinference.instrumentation.langchain").LangChainInstrumentor().uninstrument()
    tracing.stop()
