"""What a command can see: the bubblewrap command line, in whitelist form.

Only the system's programs and libraries (/usr, a handful of files of /etc), the interpreter, pytest with what it needs, the
copy and a scratch /tmp exist inside. No other package of the harness's own environment is there: an installed harness brings the
hidden tests of the shipped tasks along. The root of the file system is read-only, the home folder too; there is no network but an
empty loopback.
"""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.workspace.errors import SandboxError
from harness.workspace.refusals import refusals

MOUNT = "/srv/project"
HOME = "/home/agent"
VENV = "/opt/venv"
RUNNER = "/opt/runner.py"
SHM_BYTES = 64 * 2**20
ETC = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "protocols",
    "services",
)
_uids = itertools.count()


@dataclass(frozen=True)
class Jail:
    """One sandbox's shape. uid: the user that commands run as when the harness is root, None to stay the user we are."""

    root: Path
    scratch: Path
    uid: int | None
    packages: tuple[str, ...] = ()
    extra: tuple[tuple[Path, str], ...] = ()

    def command(self, bwrap: str, open_data: OpenData) -> list[str]:
        """The whole command line, the runner included; small files that exist only inside are passed through `open_data`."""
        base = Path(sys.base_prefix).resolve()
        args = [bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"]
        args += ["--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "sandbox", "--cap-drop", "ALL"]
        if self.uid is None:
            args += ["--unshare-user", "--disable-userns"]
        else:
            args += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        rules = refusals()
        args += ["--seccomp", str(open_data.open(rules))] if rules else []
        places = [Path(place).parent for place in (MOUNT, HOME, RUNNER, *(t for _, t in self.extra))]
        args += [a for place in (*places, Path("/etc"), Path(VENV, "bin")) for a in folders(place)]
        args += system()
        args += interpreter(base)
        args += venv(base, self.packages, open_data)
        user = self.uid if self.uid is not None else os.getuid()
        group = self.uid if self.uid is not None else os.getgid()
        args += open_data.file(f"agent:x:{user}:{group}::{HOME}:/bin/sh\n", "/etc/passwd")
        args += open_data.file(f"agent:x:{group}:\n", "/etc/group")
        args += open_data.file("127.0.0.1 localhost sandbox\n", "/etc/hosts")
        args += ["--dir", HOME, "--dir", "/var", "--symlink", "/tmp", "/var/tmp"]
        args += ["--bind", str(self.scratch), "/tmp", "--bind", str(self.root), MOUNT]
        args += open_data.file(Path(__file__).with_name("runner.py").read_text(encoding="utf-8"), RUNNER)
        for source, target in self.extra:
            args += ["--ro-bind", str(source), target]
        args += ["--remount-ro", "/", "--chdir", "/", "--clearenv", "--"]
        args += [f"{VENV}/bin/python", "-I", "-S", RUNNER, "sandbox"]
        return args + ([str(self.uid)] if self.uid is not None else [])


class OpenData:
    """Small files handed to bubblewrap as open descriptors; close when it has started."""

    def __init__(self) -> None:
        self.fds: list[int] = []

    def open(self, data: bytes) -> int:
        with tempfile.TemporaryFile() as f:
            f.write(data)
            f.seek(0)
            self.fds.append(os.dup(f.fileno()))
        return self.fds[-1]

    def file(self, text: str, target: str, mode: str = "0644") -> list[str]:
        return ["--perms", mode, "--ro-bind-data", str(self.open(text.encode())), target]

    def __enter__(self) -> OpenData:
        return self

    def __exit__(self, *exc: object) -> None:
        for fd in self.fds:
            os.close(fd)


def environment(venv_bin: str, home: str, tmp: str) -> dict[str, str]:
    """The whole environment of a command. No byte code is written: it would look like the agent's own change."""
    return {
        "PATH": f"{venv_bin}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": tmp,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }


def unused_uid() -> int | None:
    """A user id that nobody has, one per sandbox, so that the limit on processes counts this sandbox only.

    None when this user namespace maps too few ids (a rootless container).
    """
    wanted = 0x60000000 + os.getpid() * 16 + next(_uids) % 16
    try:
        ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:
        return None
    if any(first <= wanted < first + length for first, _, length in ranges):
        return wanted
    for first, _, length in ranges:
        if length >= 60000:
            return first + length - 2 - (os.getpid() + next(_uids)) % 20000
    return None


def system() -> list[str]:
    args = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            args += ["--ro-bind", str(path), str(path)]
    for name in ETC:
        args += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    if Path("/nix/store").is_dir():
        args += ["--ro-bind", "/nix/store", "/nix/store"]
    for folder in package_folders(Path("/usr")):
        args += covered(folder)
    args += ["--proc", "/proc", "--dev", "/dev", "--size", str(SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"]
    return [*args, "--remount-ro", "/dev"]


def interpreter(base: Path) -> list[str]:
    if base.is_relative_to("/usr"):
        return []
    return [*folders(base.parent), "--ro-bind", str(base), str(base)] + [
        a for folder in package_folders(base) for a in covered(folder)
    ]


def folders(path: Path) -> list[str]:
    """Makes a folder and those above it; bubblewrap by itself makes them readable for their owner only."""
    return [a for place in [*reversed(path.parents[:-1]), path] for a in ("--dir", str(place))]


def covered(folder: Path) -> list[str]:
    return ["--tmpfs", str(folder), "--remount-ro", str(folder)]


@functools.cache
def package_folders(prefix: Path) -> tuple[Path, ...]:
    """The folders below an interpreter's prefix where installed packages lie."""
    found = [f for top in (prefix, prefix / "local") for f in top.glob("lib*/python3*/*-packages")]
    return tuple(sorted({f.resolve() for f in found if f.is_dir()}))


def venv(base: Path, packages: tuple[str, ...], open_data: OpenData) -> list[str]:
    """A small virtual environment at a neutral path: the interpreter, pytest, what the task needs, and nothing else."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    executable = base / "bin" / f"python{version}"
    site = f"{VENV}/lib/python{version}/site-packages"
    args = open_data.file(f"home = {base}/bin\ninclude-system-site-packages = false\n", f"{VENV}/pyvenv.cfg")
    for name in ("python", "python3", f"python{version}"):
        args += ["--symlink", str(executable), f"{VENV}/bin/{name}"]
    script = f"#!{VENV}/bin/python\nimport sys\nimport pytest\nsys.exit(pytest.main())\n"
    for name in ("pytest", "py.test"):
        args += open_data.file(script, f"{VENV}/bin/{name}", "0755")
    args += folders(Path(site))
    for source in package_files(packages):
        args += ["--ro-bind", str(source), f"{site}/{source.name}"]
    return args


@functools.cache
def package_files(packages: tuple[str, ...]) -> tuple[Path, ...]:
    """The top-level files and folders of pytest, of `packages` and of all they need, as installed beside the harness.

    Raises SandboxError for a package that is not installed.
    """
    todo: list[tuple[str, frozenset[str]]] = [(name, frozenset()) for name in ("pytest", *packages)]
    seen, found = set(), set()
    while todo:
        name, extras = todo.pop()
        name = re.sub(r"[-_.]+", "-", name).lower()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name in {"pytest", *packages}:
                raise SandboxError(
                    f"the package {name} is needed in the sandbox but not installed; pip install it"
                ) from None
            continue
        tops = {f.parts[0] for f in distribution.files or () if f.parts[0] not in ("..", "__pycache__")}
        found |= {Path(str(distribution.locate_file(top))) for top in tops}
        todo += list(required(distribution.requires or (), extras))
    return tuple(sorted(f for f in found if f.exists()))


def required(requirements: Iterable[str], extras: frozenset[str] = frozenset()) -> Iterable[tuple[str, frozenset[str]]]:
    """The names a distribution needs, each with the extras it is asked for with.

    What only extras need is left out but for `extras`; other markers are taken as true.
    """
    for line in requirements:
        head, _, marker = line.partition(";")
        wanted = set(re.findall(r"extra\s*==\s*['\"]([\w.-]+)['\"]", marker))
        if "extra" not in marker or wanted & extras:
            found = re.match(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?", head)
            assert found is not None
            asked = (part.strip() for part in (found[2] or "").split(","))
            yield found[1], frozenset(part for part in asked if part)
