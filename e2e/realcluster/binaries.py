"""The binaries of the real control plane: found where they are, else built from their Go modules and kept.

Looked for in this order: ``$KUBEBUILDER_ASSETS``, what was built before from the very same sources
(``.stromboli/bin``), a build. Only the Go module proxy that Go itself is configured with is asked for anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "modules"
CACHE = Path(__file__).parents[2] / ".stromboli" / "bin"
BUILD_SECONDS = 3600.0
KUBERNETES_VERSION = "1.34.4"
MAJOR, MINOR = KUBERNETES_VERSION.split(".")[:2]

Say = Callable[[str], None]


class BuildError(Exception):
    """A binary can be neither found nor built; the text is for the user."""

    for_user = True


@dataclass(frozen=True, slots=True)
class Binary:
    """One binary: its name, the module under ``modules`` that it is built in, and the package of its main."""

    name: str
    module: str
    package: str
    version_flags: str = ""

    @property
    def directory(self) -> Path:
        """The module's directory."""
        return MODULES / self.module

    @property
    def arguments(self) -> list[str]:
        """Arguments of ``go build`` before ``-o``."""
        return ["-trimpath", "-ldflags", f"-s -w {self.version_flags}".strip()]

    def digest(self) -> str:
        """What the binary is made from, mains beside its own left aside; another digest means another binary."""
        state = hashlib.sha256(" ".join([self.package, *self.arguments]).encode())
        own = sorted((self.directory / self.package).glob("*.go")) if self.package.startswith(".") else []
        for path in (self.directory / "go.mod", self.directory / "go.sum", *own):
            state.update(path.read_bytes())
        return state.hexdigest()


def _values(values: Mapping[str, str]) -> str:
    """Linker flags that set variables; upstream's own builds set these, and without them versions are empty or old."""
    return " ".join(f"-X {name}={value}" for name, value in values.items())


def _kubernetes(name: str) -> Binary:
    package = "k8s.io/component-base/version"
    values = {
        f"{package}.gitVersion": f"v{KUBERNETES_VERSION}",
        f"{package}.gitMajor": MAJOR,
        f"{package}.gitMinor": MINOR,
    }
    return Binary(name, "kubernetes", f"./{name}", _values(values))


def _helm() -> Binary:
    packages = ("pkg/lint/rules", "pkg/chartutil")
    values = {
        f"helm.sh/helm/v3/{package}.k8sVersion{part}": value
        for package in packages
        for part, value in (("Major", MAJOR), ("Minor", MINOR))
    }
    return Binary("helm", "helm", "helm.sh/helm/v3/cmd/helm", _values(values))


BINARIES = {
    binary.name: binary
    for binary in (
        Binary("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kube-proxy"),
        _kubernetes("kubelet"),
        _kubernetes("kubectl"),
        Binary("coredns", "coredns", "."),
        Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        _helm(),
    )
}


def find(name: str) -> Path | None:
    """The binary if it is there already."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (given := Path(assets) / name).is_file():
        return given
    built, stamp = CACHE / name, CACHE / f"{name}.digest"
    if built.is_file() and stamp.is_file() and stamp.read_text() == BINARIES[name].digest():
        return built
    return None


def helm() -> Path | None:
    """The suite's own Helm, else the one on PATH."""
    on_path = shutil.which("helm")
    return find("helm") or (Path(on_path) if on_path else None)


async def provide(names: Iterable[str], say: Say = lambda _line: None) -> dict[str, Path]:
    """The binaries, built one after the other where they are missing.

    Raises:
        BuildError: Go is missing, or a build failed (with the end of its output).
    """
    return {name: find(name) or await _build(BINARIES[name], say) for name in names}


async def _build(binary: Binary, say: Say) -> Path:
    go = shutil.which("go")
    if go is None:
        raise BuildError(
            f"{binary.name} is not there and go is not on PATH: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to "
            f"a directory with {', '.join(BINARIES)}"
        )
    say(f"building {binary.name} (once; some minutes)")
    started = time.monotonic()
    CACHE.mkdir(parents=True, exist_ok=True)
    unfinished = CACHE / f".{binary.name}.new"
    process = await asyncio.create_subprocess_exec(
        go, "build", *binary.arguments, "-o", str(unfinished), binary.package,
        cwd=binary.directory, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), BUILD_SECONDS)
    except TimeoutError as error:
        raise BuildError(f"building {binary.name} took longer than {BUILD_SECONDS:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        tail = "\n".join(output.decode(errors="replace").splitlines()[-15:])
        raise BuildError(f"building {binary.name} failed with exit code {process.returncode}:\n{tail}")
    os.replace(unfinished, CACHE / binary.name)
    (CACHE / f"{binary.name}.digest").write_text(binary.digest())
    say(f"built {binary.name} in {time.monotonic() - started:.0f} s")
    return CACHE / binary.name
