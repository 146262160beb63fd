"""What counts as left behind by a run on real nodes, and what is somebody else's."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from e2e.realnode.leftovers import Marks, Process, Sight, belonging, leftovers, mounts_of

MARKS = Marks("stromboli-e2e-node-7", frozenset({"net:[41]", "mnt:[42]"}))
HOST = Sight(
    processes=(Process(1, "/sbin/init", frozenset({"net:[1]"}), "0::/init"),),
    mounts=frozenset({"ext4 /", "nsfs /run/netns/old"}),
    links=frozenset({"lo", "eth0", "veth-of-docker"}),
    rules=frozenset({"-A KUBE-OLD -j ACCEPT"}),
    named_namespaces=frozenset({"old"}),
    places=frozenset({"/etc/cni"}),
    settings=(("vm/overcommit_memory", "0"),),
)


@dataclass(frozen=True)
class Case:
    """What there is after a run besides what there was, and the lines that are expected of it."""

    after: Sight
    want: tuple[str, ...] = ()


CASES = {
    "nothing": Case(Sight()),
    "a process in one of the namespaces": Case(
        Sight(processes=(Process(9, "sleep 1", frozenset({"net:[41]", "mnt:[1]"})),)), ("process 9: sleep 1",)
    ),
    "a container in namespaces of its own": Case(
        Sight(processes=(Process(9, "sleep 1", frozenset({"net:[99]"}), "4:memory:/stromboli-e2e-node-7/abc"),)),
        ("process 9: sleep 1",),
    ),
    "a program that was started with the run's files": Case(
        Sight(processes=(Process(9, "etcd --data-dir=/tmp/stromboli-e2e-node-7-x/etcd"),)),
        ("process 9: etcd --data-dir=/tmp/stromboli-e2e-node-7-x/etcd",),
    ),
    "a process of somebody else's": Case(Sight(processes=(Process(9, "etcd", frozenset({"net:[1]"}), "0::/"),))),
    "a mount of the run's": Case(
        Sight(mounts=frozenset({"overlay /tmp/stromboli-e2e-node-7-x/node-1/rootfs"})),
        ("mount overlay /tmp/stromboli-e2e-node-7-x/node-1/rootfs",),
    ),
    "a namespace that a sandbox was given": Case(
        Sight(mounts=frozenset({"nsfs /run/netns/cni-1"}), named_namespaces=frozenset({"cni-1"})),
        ("mount nsfs /run/netns/cni-1", "network namespace cni-1"),
    ),
    "a mount of somebody else's": Case(Sight(mounts=frozenset({"tmpfs /mnt"}))),
    "a node's bridge and a pod's cable": Case(
        Sight(links=frozenset({"node-1", "veth1234"})), ("network interface node-1", "network interface veth1234")
    ),
    "an interface of somebody else's": Case(Sight(links=frozenset({"wg0"}))),
    "rules for Services and pods": Case(
        Sight(rules=frozenset({"-N KUBE-SERVICES", "-A FORWARD -s 10.250.1.0/24 -j ACCEPT"})),
        ("iptables rule -A FORWARD -s 10.250.1.0/24 -j ACCEPT", "iptables rule -N KUBE-SERVICES"),
    ),
    "a rule of somebody else's": Case(Sight(rules=frozenset({"-A INPUT -j DROP"}))),
    "a directory that nodes make": Case(Sight(places=frozenset({"/var/lib/kubelet"})), ("directory /var/lib/kubelet",)),
    "a control group": Case(
        Sight(groups=frozenset({"/sys/fs/cgroup/pids/stromboli-e2e-node-7"})),
        ("control group /sys/fs/cgroup/pids/stromboli-e2e-node-7",),
    ),
}


def together(one: Sight, other: Sight) -> Sight:
    """Both sights at once; settings are those of the other where it has any."""
    return Sight(
        (*one.processes, *other.processes),
        one.mounts | other.mounts,
        one.links | other.links,
        one.rules | other.rules,
        one.named_namespaces | other.named_namespaces,
        one.places | other.places,
        one.groups | other.groups,
        other.settings or one.settings,
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_only_what_carries_a_mark_of_the_run_is_left_behind(case: Case) -> None:
    assert tuple(leftovers(HOST, together(HOST, case.after), MARKS)) == case.want


def test_a_setting_of_the_machine_that_changed_is_named_with_both_values() -> None:
    after = together(HOST, Sight(settings=(("vm/overcommit_memory", "1"),)))
    assert leftovers(HOST, after, MARKS) == ["kernel setting vm.overcommit_memory: 0 became 1"]


def test_without_namespaces_none_belongs_to_them() -> None:
    """A run that ended before it entered any."""
    assert list(belonging(HOST.processes, Marks("stromboli-e2e-node-7"))) == []


def test_mounts_are_read_as_the_kernel_writes_them() -> None:
    text = (
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "30 22 0:4 net:[4026532] /run/netns/cni-1 rw shared:5 master:2 - nsfs nsfs rw\n"
    )
    assert mounts_of(text) == {"ext4 /", "nsfs /run/netns/cni-1"}
