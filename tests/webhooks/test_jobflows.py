from hypothesis import given
from hypothesis import strategies as st

from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import decide

PATH = "/jobflows/validate"


def flow(*edges: tuple[str, list[str]]) -> JsonObject:
    flows = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in edges]
    return {"metadata": {"name": "f", "namespace": "team"}, "spec": {"flows": flows}}


def test_a_chain_is_accepted_and_a_circle_is_not() -> None:
    assert decide(PATH, flow(("a", []), ("b", ["a"]), ("c", ["b", "b"]))).allowed
    assert decide(PATH, flow(("a", ["b"]), ("b", ["a"]))).message == "jobflow Flow is not DAG"
    assert decide(PATH, flow(("a", ["a"]))).message == "jobflow Flow is not DAG"


def test_an_unknown_target_is_told_before_a_circle() -> None:
    obj = flow(("a", ["a", "zz", "yy"]))
    assert decide(PATH, obj, obj).message == "jobflow Flow is not DAG: vertex is not defined: yy"


def test_of_repeated_flows_the_last_one_counts() -> None:
    assert decide(PATH, flow(("a", ["b"]), ("b", ["a"]), ("a", []))).allowed


def test_a_dense_graph_is_judged_in_linear_time() -> None:
    names = [str(n) for n in range(300)]
    assert decide(PATH, flow(*((name, names[:n]) for n, name in enumerate(names)))).allowed


EDGES = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=10)


@given(EDGES)
def test_a_flow_is_accepted_exactly_when_it_can_be_run(edges: set[tuple[int, int]]) -> None:
    waits = {n: {to for frm, to in edges if frm == n} for n in range(5)}
    done: set[int] = set()
    while ready := {n for n, targets in waits.items() if targets <= done} - done:
        done |= ready
    obj = flow(*((str(n), sorted(map(str, targets))) for n, targets in waits.items()))
    assert decide(PATH, obj).allowed is (len(done) == 5)
