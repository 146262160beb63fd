"""Security contexts of containers and pods. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated

from stromboli.api.modelling import ATOMIC, REQUIRED, Int64, Model


class AppArmorProfile(Model):
    """An AppArmor profile."""

    localhost_profile: str | None = None
    type: Annotated[str, REQUIRED] = ""


class Capabilities(Model):
    """Linux capabilities to add and drop."""

    add: Annotated[list[str], ATOMIC] = []
    drop: Annotated[list[str], ATOMIC] = []


class SELinuxOptions(Model):
    """SELinux labels."""

    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


class SeccompProfile(Model):
    """A seccomp profile."""

    localhost_profile: str | None = None
    type: Annotated[str, REQUIRED] = ""


class WindowsSecurityContextOptions(Model):
    """Windows-specific security settings."""

    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


class SecurityContext(Model):
    """Security settings of a container."""

    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class Sysctl(Model):
    """A kernel parameter."""

    name: Annotated[str, REQUIRED] = ""
    value: Annotated[str, REQUIRED] = ""


class PodSecurityContext(Model):
    """Security settings of all containers of a pod."""

    app_armor_profile: AppArmorProfile | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: Annotated[list[Int64], ATOMIC] = []
    supplemental_groups_policy: str | None = None
    sysctls: Annotated[list[Sysctl], ATOMIC] = []
    windows_options: WindowsSecurityContextOptions | None = None
