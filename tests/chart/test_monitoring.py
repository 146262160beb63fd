"""Monitoring add-ons: every expression is about a series that a process really has, and everything finds the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

import pytest
import yaml
from e2e.realcluster.rendering import named, of_kind

from stromboli.controllers.metrics import ControllerMetrics
from stromboli.kube.json import JsonObject
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.telemetry.metrics import PREFIX, Metrics
from stromboli.webhooks.serving import ReviewMetrics
from tests.chart import promql
from tests.chart.conftest import Render

NAMESPACE = "volcano-system"
FUNCTIONS = {"sum", "max", "count", "topk", "rate", "histogram_quantile", "absent"}
OF_TARGETS = frozenset({"namespace", "pod", "service"})
"""Labels that Prometheus adds; the bundled one as its configuration says, the operator by itself."""
VOLCANOS_DASHBOARDS = {
    "Volcano Global Overview",
    "Volcano Queue View",
    "Volcano Namespace View",
    "Volcano Scheduler Internal Metrics",
    "Volcano Queue Metrics",
}


class Declared(Metrics):
    """Remembers what is declared: names as Prometheus stores them, with their labels."""

    def __init__(self) -> None:
        super().__init__(process_series=True)
        self.labels: dict[str, frozenset[str]] = {
            sample.name: frozenset(sample.labels) for family in self.registry.collect() for sample in family.samples
        }

    def gauge(self, name: str, help_text: str, labels: Sequence[str] = ()):  # type: ignore[no-untyped-def]
        self.labels[PREFIX + name] = frozenset(labels)
        return super().gauge(name, help_text, labels)

    def counter(self, name: str, help_text: str, labels: Sequence[str] = ()):  # type: ignore[no-untyped-def]
        self.labels[PREFIX + name] = frozenset(labels)
        return super().counter(name, help_text, labels)

    def histogram(self, name: str, help_text: str, labels: Sequence[str] = (), *, buckets: Sequence[float]):  # type: ignore[no-untyped-def]
        for suffix, more in {"_bucket": {"le"}, "_sum": set(), "_count": set()}.items():
            self.labels[PREFIX + name + suffix] = frozenset(labels) | more
        return super().histogram(name, help_text, labels, buckets=buckets)


@pytest.fixture(scope="module")
def declared() -> dict[str, frozenset[str]]:
    """Every series of the three processes with its labels."""
    labels: dict[str, frozenset[str]] = {}
    for make in (SchedulerMetrics, ControllerMetrics, ReviewMetrics):
        make(registry := Declared())
        labels |= registry.labels
    return labels


def dashboards(objects: Iterable[JsonObject]) -> list[JsonObject]:
    data = named(objects, "ConfigMap", "grafana-volcano-dashboard")["data"]
    return [json.loads(text) for text in data.values()]


def alerts(objects: Iterable[JsonObject]) -> list[JsonObject]:
    text = named(objects, "ConfigMap", "prometheus-server-conf")["data"]["prometheus.rules"]
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def targets(objects: Iterable[JsonObject]) -> Iterator[JsonObject]:
    for dashboard in dashboards(objects):
        for panel in dashboard["panels"]:
            yield from panel["targets"]


async def test_every_expression_is_about_series_and_labels_that_there_are(
    rendered: Render, declared: dict[str, frozenset[str]]
) -> None:
    objects = await rendered(metrics_enable=True)
    expressions = [*(one["expr"] for one in targets(objects)), *(rule["expr"] for rule in alerts(objects))]
    assert len(expressions) > 50
    for expression in expressions:
        query = promql.read(expression)
        assert query.series, expression
        assert query.functions <= FUNCTIONS, expression
        known: frozenset[str] = frozenset()
        for series, matched in query.series.items():
            assert series in declared, f"{expression}: no process has {series}"
            assert matched <= declared[series] | OF_TARGETS, expression
            known |= declared[series] | OF_TARGETS
        assert query.grouping <= known, expression
        # Buckets make no quantile unless they are told apart, and only they can be.
        assert ("histogram_quantile" in query.functions) == ("le" in query.grouping), expression


async def test_legends_and_alerts_name_labels_that_their_expression_leaves(
    rendered: Render, declared: dict[str, frozenset[str]]
) -> None:
    objects = await rendered(metrics_enable=True)
    texts = [(one["expr"], re.findall(r"{{(\w+)}}", one["legendFormat"])) for one in targets(objects)]
    texts += [
        (rule["expr"], re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        for rule in alerts(objects)
    ]
    for expression, labels in texts:
        query = promql.read(expression)
        left = query.grouping or frozenset.union(*(declared[name] for name in query.series)) | OF_TARGETS
        assert set(labels) <= left, expression


async def test_variables_are_filled_from_labels_that_there_are(
    rendered: Render, declared: dict[str, frozenset[str]]
) -> None:
    used = 0
    for dashboard in dashboards(await rendered(metrics_enable=True)):
        source, *variables = dashboard["templating"]["list"]
        assert (source["name"], source["type"]) == ("datasource", "datasource")
        for variable in variables:
            series, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            assert label in declared[series]
            assert f'=~"${variable["name"]}"' in json.dumps(dashboard["panels"]).replace('\\"', '"')
            used += 1
    assert used == 2


async def test_volcanos_dashboards_are_there_and_panels_do_not_overlap(rendered: Render) -> None:
    found = dashboards(await rendered(metrics_enable=True))
    assert {dashboard["title"] for dashboard in found} > VOLCANOS_DASHBOARDS
    assert len({dashboard["uid"] for dashboard in found}) == len(found)
    for dashboard in found:
        cells: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
            own = {(x, y) for x in columns for y in rows}
            assert columns.stop <= 24
            assert not own & cells, panel["title"]
            cells |= own


async def test_the_bundled_prometheus_finds_the_processes_and_labels_their_series(rendered: Render) -> None:
    objects = await rendered(metrics_enable=True)
    config = yaml.safe_load(named(objects, "ConfigMap", "prometheus-server-conf")["data"]["prometheus.yml"])
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert sorted(jobs) == [
        "kube-state-metrics",
        "kubernetes-apiservers",
        "kubernetes-cadvisor",
        "kubernetes-nodes",
        "kubernetes-pods",
        "kubernetes-service-endpoints",
    ]
    rules = jobs["kubernetes-service-endpoints"]["relabel_configs"]
    assert {rule["target_label"] for rule in rules if "target_label" in rule} >= OF_TARGETS
    for name in ("admission", "controllers", "scheduler"):
        service = named(objects, "Service", f"volcano-{name}-service")
        notes = service["metadata"]["annotations"]
        (port,) = [port["port"] for port in service["spec"]["ports"] if port["name"] == "metrics"]
        assert (notes["prometheus.io/scrape"], notes["prometheus.io/port"]) == ("true", str(port))
        assert re.fullmatch(r".+-(scheduler|controllers|admission)-service", service["metadata"]["name"])


async def test_add_ons_have_volcanos_names_and_find_one_another(rendered: Render) -> None:
    objects = await rendered(metrics_enable=True)
    deployments = {item["metadata"]["name"] for item in of_kind(objects, "Deployment")}
    assert {"prometheus-deployment", "kube-state-metrics", "grafana"} < deployments
    ports = {item["metadata"]["name"]: item["spec"]["ports"][0] for item in of_kind(objects, "Service")}
    assert (ports["prometheus-service"]["port"], ports["prometheus-service"]["nodePort"]) == (8080, 30003)
    assert (ports["grafana"]["port"], ports["grafana"]["nodePort"]) == (3000, 30004)
    source = yaml.safe_load(named(objects, "ConfigMap", "grafana-datasources")["data"]["prometheus.yaml"])
    assert source["datasources"][0]["url"] == f"http://prometheus-service.{NAMESPACE}.svc:8080"
    config = yaml.safe_load(named(objects, "ConfigMap", "prometheus-server-conf")["data"]["prometheus.yml"])
    (state,) = [job for job in config["scrape_configs"] if job["job_name"] == "kube-state-metrics"]
    assert state["static_configs"] == [{"targets": [f"kube-state-metrics.{NAMESPACE}.svc:8080"]}]
    for name in ("prometheus-service", "grafana", "kube-state-metrics"):
        selector = named(objects, "Service", name)["spec"]["selector"]
        assert [item for item in of_kind(objects, "Deployment") if item["metadata"]["labels"]["app"] == selector["app"]]


async def test_add_ons_are_confined_as_the_processes_are(rendered: Render) -> None:
    objects = await rendered(
        metrics_enable=True, admission_enable=False, controller_enable=False, scheduler_enable=False
    )
    deployments = of_kind(objects, "Deployment")
    assert len(deployments) == 3
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        security = container["securityContext"]
        assert security["runAsNonRoot"] and security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"]
        assert container["readinessProbe"]["httpGet"]["port"] == "http"
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


async def test_kube_state_metrics_may_read_what_it_is_told_to_read(rendered: Render) -> None:
    objects = await rendered(metrics_enable=True)
    (container,) = named(objects, "Deployment", "kube-state-metrics")["spec"]["template"]["spec"]["containers"]
    (told,) = [argument for argument in container["args"] if argument.startswith("--resources=")]
    rules = named(objects, "ClusterRole", "kube-state-metrics")["rules"]
    granted = [resource for rule in rules for resource in rule["resources"]]
    assert sorted(told.removeprefix("--resources=").split(",")) == sorted(granted)


async def test_add_ons_may_be_reached_from_inside_only(rendered: Render) -> None:
    objects = await rendered(metrics_enable=True, prometheus_node_port=None, grafana_node_port=None)
    for name in ("prometheus-service", "grafana"):
        spec = named(objects, "Service", name)["spec"]
        assert "type" not in spec
        assert "nodePort" not in spec["ports"][0]


@pytest.mark.parametrize("secret", [None, "mine"])
async def test_nobody_logs_in_to_grafana_with_a_well_known_password(rendered: Render, secret: str | None) -> None:
    objects = await rendered(metrics_enable=True, grafana_admin_secret=secret)
    (container,) = named(objects, "Deployment", "grafana")["spec"]["template"]["spec"]["containers"]
    given = {variable["name"]: variable.get("value") or variable["valueFrom"] for variable in container["env"]}
    if secret is None:
        assert given["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
        assert given["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    else:
        assert given["GF_SECURITY_ADMIN_PASSWORD"] == {"secretKeyRef": {"name": "mine", "key": "admin-password"}}
        assert "GF_AUTH_DISABLE_LOGIN_FORM" not in given


async def test_dashboards_and_alerts_come_without_the_add_ons_too(rendered: Render) -> None:
    bundled = await rendered(metrics_enable=True)
    alone = await rendered(grafana_dashboards_enable=True, prometheus_rule_enable=True)
    assert dashboards(alone) == dashboards(bundled)
    labels = named(alone, "ConfigMap", "grafana-volcano-dashboard")["metadata"]["labels"]
    assert labels["grafana_dashboard"] == "1"
    (rule,) = of_kind(alone, "PrometheusRule")
    assert [one for group in rule["spec"]["groups"] for one in group["rules"]] == alerts(bundled)
    assert {item["metadata"]["name"] for item in of_kind(alone, "Deployment")} == {
        "volcano-admission",
        "volcano-controllers",
        "volcano-scheduler",
    }


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("max(a_b) > 0", ({"a_b": set()}, set(), {"max"})),
        (
            'sum by (le, x) (rate(a_bucket{q=~"z.+", w!="1"}[5m]))',
            ({"a_bucket": {"q", "w"}}, {"le", "x"}, {"sum", "rate"}),
        ),
        ("sum(a) == 0 or absent(b)", ({"a": set(), "b": set()}, set(), {"sum", "absent"})),
    ],
)
def test_expressions_are_taken_apart(expression: str, want: tuple[dict[str, set[str]], set[str], set[str]]) -> None:
    query = promql.read(expression)
    series = {name: set(labels) for name, labels in query.series.items()}
    assert (series, set(query.grouping), set(query.functions)) == want
