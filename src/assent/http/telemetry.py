"""Whether FastAPI reports its requests to OpenTelemetry.

Left alone it asks at every request whether anyone has set a provider, which costs more than all that our own boundary
checks. Who traces has set one by the time the app is made: in the environment, or in a module of the graphs.
"""

from __future__ import annotations

import os

from fastapi.telemetry import TelemetryConfig
from opentelemetry import _logs, metrics, trace


def telemetry() -> TelemetryConfig:
    providers = (trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider())
    is_set = any("Proxy" not in type(provider).__name__ for provider in providers)
    wanted = is_set or any(name.startswith("OTEL_") for name in os.environ)
    return {} if wanted else {"tracing": False, "metrics": False, "logs": False}
