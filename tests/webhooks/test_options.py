from __future__ import annotations

import pytest

from stromboli.process import flags, running
from stromboli.process.flags import FlagError
from stromboli.webhooks.__main__ import CLEAN_UP_SECONDS, main
from stromboli.webhooks.options import Options
from stromboli.webhooks.processing import hosts, settings_of

URL = "--webhook-url=https://127.0.0.1:8443"


def parsed(*arguments: str) -> Options:
    return flags.parse(Options, list(arguments), program="stromboli-webhooks")


def test_defaults_are_those_of_the_original() -> None:
    options = parsed()
    assert (options.port, options.listen_address, options.kube_api_qps, options.kube_api_burst) == (8443, "", 50, 100)
    assert (options.healthz_address, options.enable_healthz, options.graceful_shutdown_time) == (":11251", False, 30)
    assert (options.max_queue_depth, options.enable_root_queue_protection) == (5, True)
    assert not options.enable_queue_allocated_pods_check
    assert options.scheduler_name == ["volcano"]
    assert ",".join(endpoint.path for endpoint in options.endpoints()) == (
        "/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,/queues/mutate,/queues/validate"
    )


PATHS = {
    "blanks and empty elements are ignored": (" /jobs/validate, ", ["/jobs/validate"]),
    "nothing at all serves nothing": ("", []),
    "a path given twice is served once": (
        "/jobs/validate,/queues/validate,/jobs/validate",
        ["/jobs/validate", "/queues/validate"],
    ),
}


@pytest.mark.parametrize("name", PATHS)
def test_enabled_admission(name: str) -> None:
    given, want = PATHS[name]
    assert [endpoint.path for endpoint in parsed(f"--enabled-admission={given}").endpoints()] == want


REFUSED = {
    "port 0": ([URL, "--port=0"], "the port should be in the range of 1 and 65535"),
    "a port too large": ([URL, "--port=65536"], "the port should be in the range of 1 and 65535"),
    "nobody knows where we are": (
        [],
        "failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty",
    ),
    "an unknown path": (
        [URL, "--enabled-admission=/job/validate"],
        "enabled admission /job/validate not found on the admission registered map; did you mean /jobs/validate?",
    ),
    "a URL that is not for TLS": (
        ["--webhook-url=http://127.0.0.1"],
        'invalid argument "http://127.0.0.1" for --webhook-url: expected https://host[:port]',
    ),
    "a Secret nowhere": ([URL, "--certificate-secret=x"], "--certificate-secret needs --webhook-namespace"),
    "a certificate without its authority": (
        [URL, "--tls-cert-file=a", "--tls-private-key-file=b"],
        "failed to read cacert file (): give --ca-cert-file, --tls-cert-file and --tls-private-key-file, "
        "or none of them to have certificates made",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_cannot_work_are_named(name: str) -> None:
    arguments, want = REFUSED[name]
    with pytest.raises(FlagError) as refused:
        parsed(*arguments).check()
    assert str(refused.value) == want


def test_settings_that_work() -> None:
    parsed(URL).check()
    parsed("--webhook-namespace=system", "--webhook-service-name=admission").check()


@pytest.mark.parametrize("name", REFUSED)
def test_the_process_ends_with_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, want = REFUSED[name]
    assert main(arguments) == 1
    assert capsys.readouterr().err == f"stromboli-webhooks: error: {want}\n"


@pytest.mark.parametrize("seconds", [1, 30, 300])
def test_the_process_waits_for_reviews_as_long_as_it_is_told(seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def run(program: str, main: object, *, stop_seconds: float) -> int:
        waits.append(stop_seconds)
        return 0

    monkeypatch.setattr(running, "run", run)
    assert main([URL, f"--graceful-shutdown-time={seconds}s"]) == 0
    assert waits == [seconds + CLEAN_UP_SECONDS]


def test_a_url_means_that_we_register_ourselves() -> None:
    assert parsed(URL).creates_configurations
    assert not parsed("--webhook-service-name=a").creates_configurations
    assert parsed("--webhook-service-name=a", "--register-webhooks").creates_configurations


def test_certificates_are_for_every_name_we_are_called_by() -> None:
    assert hosts(parsed("--webhook-namespace=system", "--webhook-service-name=admission")) == [
        "admission.system.svc",
        "admission.system",
        "admission",
        "localhost",
        "127.0.0.1",
    ]
    assert hosts(parsed("--webhook-url=https://[::1]:8443"))[0] == "::1"


def test_decisions_follow_the_flags() -> None:
    settings = settings_of(
        parsed(
            "--scheduler-name=one",
            "--scheduler-name=two",
            "--max-queue-depth=3",
            "--enable-queue-allocated-pods-check",
            "--enable-root-queue-protection=false",
            "--feature-gates=SchedulingGatesQueueAdmission=true",
        ),
        (1, 34),
    )
    assert settings.scheduler_names == ("one", "two")
    assert (settings.max_queue_depth, settings.enable_queue_allocated_pods_check) == (3, True)
    assert not settings.enable_root_queue_protection
    assert settings.scheduling_gates_queue_admission


POD_LEVEL = {
    "on from 1.34": ((1, 34), "", True),
    "off before": ((1, 33), "", False),
    "on by hand": ((1, 33), "--feature-gates=PodLevelResources=true", True),
    "off by hand": ((1, 35), "--feature-gates=PodLevelResources=false", False),
}


@pytest.mark.parametrize("name", POD_LEVEL)
def test_pod_level_resources_follow_the_api_server(name: str) -> None:
    version, flag, want = POD_LEVEL[name]
    assert settings_of(parsed(*filter(None, [flag])), version).pod_level_resources is want
