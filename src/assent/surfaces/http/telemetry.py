"""Decides whether FastAPI reports its requests to OpenTelemetry.

By default FastAPI looks for a provider at every request, which costs more than all checks of our own boundary. A
provider is set before the app is created: in the environment, or in a module of the graphs.
"""

from __future__ import annotations

from fastapi.telemetry import TelemetryConfig
from opentelemetry import _logs, metrics, trace

from assent.settings import is_telemetry_set


def telemetry() -> TelemetryConfig:
    providers = (trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider())
    is_set = any("Proxy" not in type(provider).__name__ for provider in providers)
    wanted = is_set or is_telemetry_set()
    return {} if wanted else {"tracing": False, "metrics": False, "logs": False}
