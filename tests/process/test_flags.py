from dataclasses import dataclass

import pytest

from stromboli.process import flags
from stromboli.process.options import LeaderOptions, LoggingOptions


@dataclass
class Options(LoggingOptions):
    name: str = flags.text("volcano", "a name")
    workers: int = flags.integer(3, "workers")
    ratio: float = flags.number(1.5, "ratio")
    period: float = flags.duration("1s", "period")
    enable_metrics: bool = flags.boolean(False, "metrics")
    scheduler_name: list[str] = flags.repeated(["volcano"], "names")
    controllers: list[str] = flags.separated(["*"], "controllers")


def parse(*arguments: str) -> Options:
    return flags.parse(Options, arguments, program="test")


def test_defaults_hold_without_arguments() -> None:
    got = parse()
    assert (got.name, got.workers, got.period, got.enable_metrics) == ("volcano", 3, 1.0, False)
    assert (got.scheduler_name, got.controllers, got.feature_gates) == (["volcano"], ["*"], {})


@pytest.mark.parametrize("arguments", [("--workers=7",), ("--workers", "7")])
def test_values_follow_equals_or_a_blank(arguments: tuple[str, ...]) -> None:
    assert parse(*arguments).workers == 7


def test_underscores_stand_for_dashes() -> None:
    assert parse("--enable_metrics=true").enable_metrics is True


@pytest.mark.parametrize(("argument", "want"), [("--enable-metrics", True), ("--enable-metrics=f", False)])
def test_booleans_stand_bare_or_with_a_value(argument: str, want: bool) -> None:
    assert parse(argument).enable_metrics is want


def test_durations_become_seconds() -> None:
    assert parse("--period=1m30.5s").period == 90.5


def test_a_repeated_flag_replaces_the_default_and_does_not_split() -> None:
    assert parse("--scheduler-name=a,b", "--scheduler-name=c").scheduler_name == ["a,b", "c"]


def test_a_separated_flag_splits_and_adds_up() -> None:
    assert parse("--controllers=*, -gc", "--controllers=queue").controllers == ["*", "-gc", "queue"]


def test_feature_gates_are_a_map() -> None:
    assert parse("--feature-gates=A=true,B=false", "--feature-gates=C=1").feature_gates == {
        "A": True,
        "B": False,
        "C": True,
    }


@pytest.mark.parametrize("argument", ["-v=4", "--v=4", "-v4", "--verbosity=4"])
def test_verbosity_in_every_spelling(argument: str) -> None:
    assert parse(argument).verbosity == 4


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--workers=many", 'invalid argument "many" for --workers: expected a whole number'),
        ("--period=1d", 'invalid argument "1d" for --period: expected a duration such as 1s, 500ms or 1m30s'),
        ("--enable-metrics=yes", 'invalid argument "yes" for --enable-metrics: expected true or false'),
        ("--worker=7", "unknown flag: --worker; did you mean --workers?"),
        ("--feature-gates=A", 'invalid argument "A" for --feature-gates: expected Name=bool, got "A"'),
        ("run", 'unexpected argument "run": only flags are taken (see --help)'),
    ],
)
def test_unusable_arguments_are_named(argument: str, message: str) -> None:
    with pytest.raises(flags.FlagError) as error:
        parse(argument)
    assert str(error.value) == message


def test_klog_flags_are_accepted_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    parse("--logtostderr", "--vmodule=a=1")
    assert capsys.readouterr().err == "test: warning: --vmodule has no effect here\n"


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse("--help")
    assert ended.value.code == 0
    assert "--scheduler-name" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--leader-elect-lease-duration=5s"],
            "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline",
        ),
        (["--leader-elect-retry-period=0s"], "--leader-elect-retry-period must be greater than zero"),
        ([], "--leader-elect-resource-name must not be empty"),
    ],
)
def test_leadership_that_cannot_work_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(flags.FlagError) as error:
        flags.parse(LeaderOptions, arguments, program="test").check_leadership()
    assert str(error.value) == message


def test_leadership_is_not_checked_when_off() -> None:
    flags.parse(
        LeaderOptions, ["--leader-elect=false", "--leader-elect-retry-period=0s"], program="test"
    ).check_leadership()
