"""Optional traces of the assistant's runs: Langfuse if its keys are set, OpenTelemetry if an endpoint is set.

Both are optional packages. Their exporters work in the background, so an unreachable host neither breaks nor slows a
run. All runs of a thread, including those resumed after a pause, are one trace: its id is derived from the thread's.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from assent.settings import AssistantSettings

log = logging.getLogger(__name__)

_STOP_SECONDS = 2.0
_missing: set[str] = set()
_providers: dict[str, Any] = {}


@contextmanager
def traced(settings: AssistantSettings, thread_id: str | None) -> Iterator[list[Any]]:
    """The callbacks for a run of this thread. A missing package is logged once and skipped."""
    handlers = []
    if settings.langfuse_public_key and settings.langfuse_secret_key:
        handlers += _langfuse(settings, thread_id)
    if not settings.otlp_endpoint:
        yield handlers
        return
    with _opentelemetry(settings.otlp_endpoint, thread_id):
        yield handlers


def stop() -> None:
    """Flushes all exporters in parallel and stops them, within a time limit."""
    threads = [threading.Thread(target=provider.shutdown, daemon=True) for provider in _providers.values()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + _STOP_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    _providers.clear()


def trace_id(thread_id: str) -> str:
    """32 hexadecimal digits, derived as Langfuse derives an id from a seed."""
    return hashlib.sha256(thread_id.encode()).digest()[:16].hex()


def _langfuse(settings: AssistantSettings, thread_id: str | None) -> list[Any]:
    try:
        langfuse, hooks = import_module("langfuse"), import_module("langfuse.langchain")
    except ImportError:
        _warn_missing("langfuse", "LANGFUSE_PUBLIC_KEY is set")
        return []
    assert settings.langfuse_public_key is not None
    assert settings.langfuse_secret_key is not None
    public = settings.langfuse_public_key.get_secret_value()
    if public not in _providers:
        # A separate provider: otherwise Langfuse would receive the traces of every other library in the process.
        _providers[public] = provider = import_module("opentelemetry.sdk.trace").TracerProvider()
        langfuse.Langfuse(
            public_key=public,
            secret_key=settings.langfuse_secret_key.get_secret_value(),
            host=settings.langfuse_host,
            timeout=5,
            tracer_provider=provider,
        )
    context: Any = {"trace_id": trace_id(thread_id)} if thread_id else None
    return [hooks.CallbackHandler(public_key=public, trace_context=context)]


@contextmanager
def _opentelemetry(endpoint: str, thread_id: str | None) -> Iterator[None]:
    try:
        _instrument(endpoint)
    except ImportError:
        _warn_missing(
            "openinference-instrumentation-langchain opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
            "an OTLP endpoint is set",
        )
        yield
        return
    from opentelemetry import context, trace

    if not thread_id:
        yield
        return
    number = int(trace_id(thread_id), 16)
    # A parent span that does not exist: its children share the trace in any process.
    sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    parent = trace.SpanContext(number, number & 0xFFFFFFFFFFFFFFFF or 1, is_remote=True, trace_flags=sampled)
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(parent)))
    try:
        yield
    finally:
        context.detach(token)


def _instrument(endpoint: str) -> None:
    """Once per process: LangChain has one set of hooks."""
    if endpoint in _providers:
        return
    hooks = import_module("openinference.instrumentation.langchain")
    exporters = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    sdk, resources = import_module("opentelemetry.sdk.trace"), import_module("opentelemetry.sdk.resources")
    export = import_module("opentelemetry.sdk.trace.export")
    provider = sdk.TracerProvider(resource=resources.Resource.create({"service.name": "assent-assistant"}))
    exporter = exporters.OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=5)
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    hooks.LangChainInstrumentor().instrument(tracer_provider=provider)
    _providers[endpoint] = provider


def _warn_missing(packages: str, why: str) -> None:
    if packages not in _missing:
        _missing.add(packages)
        log.warning("%s, but the package for traces is not installed: pip install %s", why, packages)
