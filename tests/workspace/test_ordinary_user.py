"""The sandbox again, as a user without rights: only root can start that, with an interpreter that everybody may run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOBODY = 65534


def interpreter_for_all() -> str | None:
    """A Python of this version that the ordinary user may run."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/local/bin/{version}", f"/usr/bin/{version}"):
        try:
            if (
                subprocess.run(
                    [path, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=False
                ).returncode
                == 0
            ):
                return path
        except OSError:
            continue
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
def test_isolation_and_limits_hold_for_an_ordinary_user():
    python = interpreter_for_all()
    if python is None:
        pytest.skip("no interpreter of this version that everybody may run")
    places = [str(HERE.parents[1]), *(p for p in sys.path if p.endswith("-packages"))]
    temp = Path("/var/tmp") / f"calledshot-{os.getpid()}"
    temp.mkdir(mode=0o700)
    os.chown(temp, NOBODY, NOBODY)
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(places), "TMPDIR": str(temp), "HOME": str(temp)}
    argv = [python, "-B", "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={temp / 'base'}"]
    argv += [
        str(HERE / name) for name in ("test_isolation.py", "test_limits.py", "test_escapes.py", "test_what_is_left.py")
    ]
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        result = subprocess.run(argv, **who, env=env, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["rm", "-rf", str(temp)], check=True)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]
    assert " passed" in result.stdout
