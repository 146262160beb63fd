import pytest

from stromboli.telemetry import traces


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "console"},
    ],
    ids=["nothing set", "none wins over an endpoint", "disabled wins over all"],
)
def test_traces_are_off_unless_asked_for(environ: dict[str, str]) -> None:
    assert traces.setup("test", environ) is False


def test_an_unknown_exporter_is_named() -> None:
    with pytest.raises(traces.TracesError, match='"zipkin" is not known; use otlp, console or none'):
        traces.setup("test", {"OTEL_TRACES_EXPORTER": "zipkin"})
