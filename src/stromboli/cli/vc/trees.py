"""The command trees of vcctl and of the stand-alone commands: every name, flag, shorthand and default in one place."""

from __future__ import annotations

from dataclasses import replace

from stromboli.cli.commanding.commands import CONNECTION_FLAGS, Command, Flag
from stromboli.cli.vc.flags import DRY_RUN, OUTPUT, OUTPUT_DATA, OUTPUT_ONE, WATCH

PACKAGE = "stromboli.cli.vc"
NAMESPACE = Flag("namespace", "the namespace of job", "n", "default", completes="namespaces")
JOB_NAME = Flag("name", "the name of job", "N", completes="jobs")
ALL_NAMESPACES = Flag("all-namespaces", "list jobs in all namespaces", default=False)
DEFAULT_RESOURCES = "cpu=1000m,memory=100Mi"
PLUGINS_DIR = Flag("plugins-dir", "folder of plugins, as given to the scheduler")
POLICY = Flag("policy", "the scheduler's policy file (default: the chart's ConfigMap, else the built-in policy)", "p")
POLICY_AS_RECORDED = Flag(
    "policy", "the scheduler's policy file (default: the snapshot's, else the built-in policy)", "p"
)
SIZES = (
    Flag("min", "the minimal available tasks of job", "m", 1),
    Flag("replicas", "the total tasks of job", "r", 1),
    Flag("requests", "the resource request of the task", "R", DEFAULT_RESOURCES),
    Flag("limits", "the resource limit of the task", "L", DEFAULT_RESOURCES),
)


def leaf(
    name: str, short: str, run: str, *flags: Flag, argument: str = "", completes: str = "", example: str = ""
) -> Command:
    """A command that talks to a cluster. Its argument is completed as its flag ``--name`` is, if it has one."""
    of_name = next((flag.completes for flag in flags if flag.name == "name"), "")
    flags = (*flags, *CONNECTION_FLAGS)
    completes = completes or of_name
    return Command(name, short, f"{PACKAGE}.{run}", flags, argument=argument, completes=completes, example=example)


EXPLAIN = leaf(
    "explain",
    "say why a job waits, with numbers, and what to do about it",
    "explain:explain_job",
    NAMESPACE,
    JOB_NAME,
    POLICY,
    PLUGINS_DIR,
    OUTPUT_DATA,
    argument="NAME",
    example="vcctl job explain train",
)


def _job() -> Command:
    one = (NAMESPACE, JOB_NAME)
    return Command(
        "job",
        "vcctl command line operation job",
        children=(
            leaf(
                "run",
                "run job by parameters from the command line",
                "jobs:run_job",
                Flag("image", "the container image of job", "i", "busybox"),
                *one,
                *SIZES,
                Flag("scheduler", "the scheduler for this job", "S", "volcano"),
                Flag("filename", "the yaml file of job", "f"),
                DRY_RUN,
                OUTPUT_ONE,
                argument="NAME",
                example="vcctl job run train --replicas 4 --min 4 --requests cpu=2,memory=1Gi "
                "--limits cpu=2,memory=1Gi\nvcctl job run --filename job.yaml",
            ),
            leaf(
                "list",
                "list job information",
                "jobs:list_jobs",
                Flag("queue", "list job with specified queue name", "q", completes="queues"),
                NAMESPACE,
                Flag("scheduler", "list job with specified scheduler name", "S"),
                ALL_NAMESPACES,
                Flag("selector", "fuzzy matching jobName"),
                OUTPUT,
                WATCH,
            ),
            leaf("view", "show job information", "job_view:view_job", *one, OUTPUT_ONE, argument="NAME"),
            EXPLAIN,
            leaf(
                "preview",
                "say what would become of a job, without submitting it",
                "rehearse:preview_job",
                Flag("filename", "the yaml file of job, or - for standard input", "f"),
                NAMESPACE,
                POLICY,
                PLUGINS_DIR,
                OUTPUT_DATA,
                argument="NAME",
                example="vcctl job preview --filename job.yaml",
            ),
            leaf("suspend", "abort a job", "jobs:suspend_job", *one, DRY_RUN, OUTPUT_ONE, argument="NAME"),
            leaf("resume", "resume a job", "jobs:resume_job", *one, DRY_RUN, OUTPUT_ONE, argument="NAME"),
            leaf("delete", "delete a job", "jobs:delete_job", *one, DRY_RUN, OUTPUT_ONE, argument="NAME"),
        ),
    )


def _queue() -> Command:
    name = Flag("name", "the name of queue", "n", completes="queues")
    return Command(
        "queue",
        "Queue Operations",
        children=(
            leaf(
                "create",
                "creates queue",
                "queues:create_queue",
                Flag("name", "the name of queue", "n", "test"),
                Flag("weight", "the weight of the queue", "w", 1),
                Flag("state", "the state of queue", "S", "Open", completes="Open|Closed"),
                DRY_RUN,
                OUTPUT_ONE,
            ),
            leaf("delete", "delete queue", "queues:delete_queue", name, DRY_RUN, OUTPUT_ONE, argument="NAME"),
            leaf(
                "operate",
                "operate queue",
                "queues:operate_queue",
                name,
                Flag("weight", "the weight of the queue", "w", 0),
                Flag(
                    "action",
                    "operate action to queue, valid actions are open, close, update",
                    "a",
                    completes="open|close|update",
                ),
                DRY_RUN,
                OUTPUT_ONE,
                argument="NAME",
            ),
            leaf("list", "lists all the queue", "queues:list_queues", OUTPUT, WATCH),
            leaf("get", "get a queue", "queues:get_queue", name, OUTPUT, argument="NAME"),
        ),
    )


def _flow(name: str, words: str, suffix: str) -> Command:
    named = Flag("name", f"the name of {words}", "N", completes=f"{name}s")
    namespace = Flag("namespace", f"the namespace of {words}", "n", "default", completes="namespaces")
    file = Flag("file", f"the yaml file of {words}", "f")
    everywhere = (
        (Flag("all-namespaces", f"list {words}s in all namespaces", default=False),) if name == "jobflow" else ()
    )
    form = Flag("format", "the output format: yaml or json", "o", "yaml", completes="yaml|json")
    return Command(
        name,
        f"vcctl command line operation {name}",
        children=(
            leaf("create", f"create a {words}", f"flows:create_{suffix}", file, DRY_RUN),
            leaf("list", f"list {words}s", f"flows:list_{suffix}s", namespace, *everywhere, OUTPUT, WATCH),
            leaf("get", f"get a {words}", f"flows:get_{suffix}", named, namespace, OUTPUT_ONE, argument="NAME"),
            leaf(
                "delete",
                f"delete a {words}",
                f"flows:delete_{suffix}",
                named,
                namespace,
                file,
                DRY_RUN,
                argument="NAME",
            ),
            leaf(
                "describe", f"describe a {words}", f"flows:describe_{suffix}", named, namespace, form, argument="NAME"
            ),
        ),
    )


def _pod() -> Command:
    return Command(
        "pod",
        "vcctl command line operation pod",
        children=(
            leaf(
                "list",
                "list pod information",
                "pods:list_pods",
                Flag("queue", "list pod with specified queue name", "q", completes="queues"),
                Flag("job", "list pod with specified job name", "j", completes="jobs"),
                Flag("namespace", "the namespace of pod", "n", "default", completes="namespaces"),
                Flag("all-namespaces", "list pods in all namespaces", default=False),
                OUTPUT,
                WATCH,
            ),
        ),
    )


def kubectl_vc() -> Command:
    """``kubectl vc``: the tree of vcctl, and ``explain`` without the word ``job``."""
    return replace(tree := vcctl("kubectl vc"), children=(*tree.children, EXPLAIN))


def vcctl(name: str = "vcctl") -> Command:
    """The tree of vcctl."""
    return Command(
        name,
        "vcctl controls volcano jobs and queues",
        long="Command line of Stromboli: jobs, queues, flows and pods, and why something waits.",
        children=(
            _job(),
            _queue(),
            _flow("jobflow", "jobflow", "flow"),
            _flow("jobtemplate", "job template", "template"),
            _pod(),
            leaf(
                "snapshot",
                "write what scheduling reads of the cluster to a file",
                "rehearse:take_snapshot",
                POLICY,
                argument="FILE",
            ),
            Command(
                "simulate",
                "run the scheduler's decisions over a snapshot, offline",
                f"{PACKAGE}.rehearse:simulate_snapshot",
                (
                    Flag("with", "submit the vcjob of this file first (repeatable)", default=()),
                    POLICY_AS_RECORDED,
                    PLUGINS_DIR,
                    Flag("set", "change a field, as in queue/research.spec.weight=5 (repeatable)", default=()),
                    Flag("cycles", "the most cycles to run", "c", 10),
                    Flag("output", "output format: json, yaml or html", "o", completes="json|yaml|html"),
                ),
                argument="SNAPSHOT",
                example="vcctl simulate snapshot.json --set queue/research.spec.weight=5 -o html > what-if.html",
            ),
            Command(
                "policy",
                "look at the scheduler's policy files",
                children=(
                    Command(
                        "lint",
                        "say what a policy file will do and what in it contradicts itself",
                        f"{PACKAGE}.policy_lint:lint_policy",
                        (PLUGINS_DIR, OUTPUT_DATA),
                        argument="FILE",
                    ),
                ),
            ),
            leaf(
                "top",
                "show queues, jobs and what waits, live",
                "top:show_top",
                Flag("interval", "seconds between looks", "i", 2),
                Flag("once", "look once, and end", default=False),
            ),
            Command("version", "Print the version information", f"{PACKAGE}.version:show_version"),
            Command(
                "completion",
                "print the completion script of a shell: bash, zsh or fish",
                f"{PACKAGE}.completion:print_script",
                argument="SHELL",
                completes="bash|zsh|fish",
                example="source <(vcctl completion bash)",
            ),
        ),
    )


def _short_flags(*, all_of: str = "default") -> tuple[Flag, ...]:
    return (
        Flag("name", "the name of job", "n", completes="jobs"),
        Flag("namespace", "the namespace of job", "N", all_of, completes="namespaces"),
    )


VSUB = leaf(
    "vsub",
    "submit a job with specified name and arguments. yaml/json file is not accepted, you may refer to kubectl.",
    "short:submit",
    *_short_flags(all_of=""),
    Flag("image", "the container image of job", "i"),
    Flag("scheduler", "the scheduler for this job", "S"),
    *SIZES,
    Flag("command", "the command of the container of job, split into words as a shell does", "c"),
    DRY_RUN,
    OUTPUT_ONE,
    example='vsub -n train -r 4 -m 4 -R cpu=2,memory=1Gi -L cpu=2,memory=1Gi -c "sleep 60"',
)
CREATE_VCJOB = Command(
    "kubectl create vcjob",
    "Create a vcjob of equal pods that start together or not at all.",
    f"{PACKAGE}.kubectl:create_vcjob",
    (
        Flag("image", "the container image of the pods", default="busybox"),
        Flag("replicas", "the number of pods", "r", 1),
        Flag("min", "the number of pods that must start together (default: all)", "m", 0),
        Flag("queue", "the queue of the job", "q", "default", completes="queues"),
        Flag("requests", "the resource requests of a pod", default=DEFAULT_RESOURCES),
        Flag("limits", "the resource limits of a pod (default: the requests)"),
        Flag("scheduler", "the scheduler of the job", default="volcano"),
        Flag("namespace", "the namespace of the job (default: that of the context)", "n", completes="namespaces"),
        DRY_RUN,
        OUTPUT_ONE,
        *CONNECTION_FLAGS,
    ),
    argument="NAME [-- COMMAND...]",
    kubectl_style=True,
    example="kubectl create vcjob train --image=busybox --replicas=4 --queue=research -- sleep 60",
)
VCANCEL = leaf(
    "vcancel",
    "cancel a running, pending, or aborted job with specified name in default or specified namespace",
    "short:cancel",
    *_short_flags(),
    DRY_RUN,
    OUTPUT_ONE,
)
VSUSPEND = leaf(
    "vsuspend",
    "suspend a running or pending job with specified name in default or specified namespace",
    "short:suspend",
    *_short_flags(),
    DRY_RUN,
    OUTPUT_ONE,
)
VRESUME = leaf(
    "vresume",
    "resume an aborted job with specified name in default or specified namespace",
    "short:resume",
    *_short_flags(),
    DRY_RUN,
    OUTPUT_ONE,
)
VJOBS = leaf(
    "vjobs",
    "view information of a job with specified name or jobs from the same namespace",
    "short:show_jobs",
    *_short_flags(),
    Flag("scheduler", "list job with specified scheduler name", "S"),
    ALL_NAMESPACES,
    Flag("selector", "fuzzy matching jobName"),
    OUTPUT,
    WATCH,
)
VQUEUES = leaf(
    "vqueues",
    "view information of a queue with specified name or queues from the same namespace",
    "queues:show_queues",
    Flag("name", "the name of queue", "n", completes="queues"),
    OUTPUT,
    WATCH,
)
