"""Projected volumes and the items they are made of. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api.corev1.environment import ObjectFieldSelector, ResourceFieldSelector
from stromboli.api.meta import LabelSelector
from stromboli.api.modelling import ATOMIC, REQUIRED, Int32, Int64, Model, Schema


class KeyToPath(Model):
    """A key and the file it becomes."""

    key: Annotated[str, REQUIRED] = ""
    mode: Int32 | None = None
    path: Annotated[str, REQUIRED] = ""


class DownwardAPIVolumeFile(Model):
    """A field of the pod and the file it becomes."""

    field_ref: ObjectFieldSelector | None = None
    mode: Int32 | None = None
    path: Annotated[str, REQUIRED] = ""
    resource_field_ref: ResourceFieldSelector | None = None


class ClusterTrustBundleProjection(Model):
    """Trust anchors as a file."""

    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    path: Annotated[str, REQUIRED] = ""
    signer_name: str | None = None


class ConfigMapProjection(Model):
    """Keys of a ConfigMap as files."""

    map_type: ClassVar[str | None] = "atomic"

    items: Annotated[list[KeyToPath], ATOMIC] = []
    name: Annotated[str | None, Schema(default="")] = None
    optional: bool | None = None


class DownwardAPIProjection(Model):
    """Fields of the pod as files."""

    items: Annotated[list[DownwardAPIVolumeFile], ATOMIC] = []


class PodCertificateProjection(Model):
    """A private key and certificate chain for the pod."""

    certificate_chain_path: str | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    key_type: Annotated[str, REQUIRED] = ""
    max_expiration_seconds: Int32 | None = None
    signer_name: Annotated[str, REQUIRED] = ""
    user_annotations: dict[str, str] = {}


class SecretProjection(Model):
    """Keys of a Secret as files."""

    map_type: ClassVar[str | None] = "atomic"

    items: Annotated[list[KeyToPath], ATOMIC] = []
    name: Annotated[str | None, Schema(default="")] = None
    optional: bool | None = None


class ServiceAccountTokenProjection(Model):
    """A service account token as a file."""

    audience: str | None = None
    expiration_seconds: Int64 | None = None
    path: Annotated[str, REQUIRED] = ""


class VolumeProjection(Model):
    """One source of a projected volume; exactly one is set."""

    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = Field(default=None, alias="downwardAPI")
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Model):
    """Several sources in one directory."""

    default_mode: Int32 | None = None
    sources: Annotated[list[VolumeProjection], ATOMIC] = []
