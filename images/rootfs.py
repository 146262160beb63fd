"""What makes unpacked packages a system that runs: accounts, certificates, names, byte code, fixed times."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from images import ImageError
from images.debian import PYTHON
from images.running import run
from images.wheels import DIST_PACKAGES

USER_ID = 65532
HOME = "/tmp"  # the only directory that the chart lets the processes write to
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"

# Generated modules and tables that nobody reads: kept as byte code without documentation, a quarter of their size.
GENERATED = ("kubernetes_asyncio/client/api", "kubernetes_asyncio/client/models", "pygments/lexers", "wcwidth")

ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/:/nonexistent\nstromboli:x:{USER_ID}:{USER_ID}::{HOME}:/nonexistent\n",
    "etc/group": f"root:x:0:\nstromboli:x:{USER_ID}:\n",
    # Without this file glibc asks the name server before it looks into /etc/hosts.
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
}


def furnish(root: Path) -> None:
    """Writes the files that installation scripts would have made."""
    for name, text in ACCOUNTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    bundle = root / CERTIFICATES
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(path.read_bytes() for path in sorted(root.glob("usr/share/ca-certificates/*/*.crt"))))
    # Where OpenSSL looks unless SSL_CERT_FILE says otherwise.
    default = root / "usr/lib/ssl/cert.pem"
    default.parent.mkdir(parents=True, exist_ok=True)
    default.symlink_to(f"/{CERTIFICATES}")
    (root / "usr/bin/python3").symlink_to(PYTHON)


def python_command(root: Path) -> list[str | Path]:
    """A command that runs the image's Python where it lies, without the rights that chroot needs.

    Raises:
        ImageError: the root has no dynamic loader.
    """
    loaders = sorted(root.glob("usr/lib/*/ld-linux-*.so.*"))
    if not loaders:
        raise ImageError(f"{root} has no dynamic loader: libc6 is missing from the packages")
    return [loaders[0], "--library-path", loaders[0].parent, root / "usr/bin" / PYTHON]


def compile_modules(root: Path) -> None:
    """Writes byte code with the image's own Python, so that nothing is compiled at each start.

    It is bound to nothing but its place: a hash that is not checked instead of a time.
    """
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    options = ["-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/"]
    compiler = [*python_command(root), "-B", "-m", "compileall", *options]
    failed = "compiling the modules failed"
    for name in GENERATED:
        directory = root / DIST_PACKAGES / name
        run([*compiler, "-b", "-o", "2", directory], env=environment, failed=failed)
        for source in directory.rglob("*.py"):
            source.unlink()
    run([*compiler, root / "usr/lib" / PYTHON, root / DIST_PACKAGES], env=environment, failed=failed)


def strip_debug_symbols(root: Path) -> None:
    """Takes debug symbols out of compiled modules; some wheels are published with more symbols than code.

    Libraries that a wheel bundles are left alone: the tools that bundle them lay files out in a way that strip breaks.
    """
    modules = sorted((root / DIST_PACKAGES).rglob("*.so"))
    bundled = {path.name.removesuffix(".libs") for path in (root / DIST_PACKAGES).glob("*.libs")}
    mine = [
        path for path in modules if path.relative_to(root / DIST_PACKAGES).parts[0].removesuffix(".libs") not in bundled
    ]
    if mine:
        run(["strip", "--strip-debug", *mine], failed="strip (of binutils) failed on the compiled modules")


def fix_modes_and_times(root: Path, epoch: int) -> None:
    """Gives every entry the same time, and modes that no umask had a part in: all may read, nobody but root may write.

    Directories for everybody's files (sticky) stay what they are.
    """
    for directory, _names, files in os.walk(root, topdown=False):
        for path in (Path(directory, name) for name in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
            os.utime(path, (epoch, epoch), follow_symlinks=False)
        if not os.stat(directory).st_mode & stat.S_ISVTX:
            os.chmod(directory, 0o755)
        os.utime(directory, (epoch, epoch))
