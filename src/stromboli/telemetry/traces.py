"""OpenTelemetry traces: off (and free) unless the standard environment variables ask for them.

Set ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT``) to send spans to a collector, or
``OTEL_TRACES_EXPORTER=console`` to print them. ``OTEL_SDK_DISABLED=true`` always wins. See ADR 2.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.sdk.trace.export import SpanExporter

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class TracesError(Exception):
    """Traces were asked for but cannot be had; the text says what to install or unset."""


def setup(service: str, environ: Mapping[str, str] | None = None) -> bool:
    """Install a tracer provider for ``service`` when the environment asks for one; answers whether it did.

    Raises:
        TracesError: an exporter is named that is unknown or not installed.
    """
    environ = os.environ if environ is None else environ
    exporter = _exporter(environ)
    if exporter is None:
        return False
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({SERVICE_NAME: environ.get("OTEL_SERVICE_NAME", service)})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return True


def tracer(name: str) -> trace.Tracer:
    """The tracer of one module; a no-op unless :func:`setup` installed a provider."""
    return trace.get_tracer(name)


def _exporter(environ: Mapping[str, str]) -> SpanExporter | None:
    wanted = environ.get("OTEL_TRACES_EXPORTER", "otlp" if any(map(environ.get, _ENDPOINTS)) else "none")
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or wanted == "none":
        return None
    if wanted == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter()
    if wanted != "otlp":
        raise TracesError(f'OTEL_TRACES_EXPORTER="{wanted}" is not known; use otlp, console or none')
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise TracesError("traces over OTLP need an extra: pip install 'stromboli[otlp]'") from error
    return OTLPSpanExporter()
