"""Probes and lifecycle hooks of containers. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated

from stromboli.api.modelling import ATOMIC, REQUIRED, Int32, Int64, IntOrString, Model, Schema


class ExecAction(Model):
    """A command run in the container."""

    command: Annotated[list[str], ATOMIC] = []


class HTTPHeader(Model):
    """A header of an HTTP request."""

    name: Annotated[str, REQUIRED] = ""
    value: Annotated[str, REQUIRED] = ""


class HTTPGetAction(Model):
    """An HTTP request."""

    host: str | None = None
    http_headers: Annotated[list[HTTPHeader], ATOMIC] = []
    path: str | None = None
    port: Annotated[IntOrString, REQUIRED] = 0
    scheme: str | None = None


class SleepAction(Model):
    """A pause."""

    seconds: Annotated[Int64, REQUIRED] = 0


class TCPSocketAction(Model):
    """A connection attempt."""

    host: str | None = None
    port: Annotated[IntOrString, REQUIRED] = 0


class LifecycleHandler(Model):
    """One lifecycle hook; exactly one action is set."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(Model):
    """What happens after a container started and before it stops."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class GRPCAction(Model):
    """A gRPC health check."""

    port: Annotated[Int32, REQUIRED] = 0
    service: Annotated[str | None, Schema(default="")] = None


class Probe(Model):
    """A periodic check of a container."""

    exec: ExecAction | None = None
    failure_threshold: Int32 | None = None
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: Int64 | None = None
    timeout_seconds: Int32 | None = None
