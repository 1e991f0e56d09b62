from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from harness.workspace.capabilities import capabilities
from harness.workspace.sandbox import how_sandboxed


def test_what_is_said_to_hold_was_tried_here():
    found = capabilities()
    assert found["available"] is True
    assert found["user"] == how_sandboxed()
    missing = {name for name, holds in found["holds"].items() if not holds}
    assert missing <= {"processes"}
    assert bool(found["notes"]) == bool(missing)


def test_without_namespaces_one_line_says_so_and_nothing_runs(tmp_path):
    """In a user namespace that allows no further ones, which is how a machine with them turned off looks from inside."""
    script = (
        "import json\nfrom pathlib import Path\nfrom harness.settings import SandboxSettings\n"
        "from harness.workspace import SandboxError, open_workspace\nfrom harness.workspace.capabilities import capabilities\n"
        "from harness.workspace.copy import copy_of\n"
        f"repo = Path({str(tmp_path)!r}, 'repo')\nrepo.mkdir()\nsaid = None\n"
        f"copy = copy_of(repo, Path({str(tmp_path)!r}, 'run'))\n"
        "try:\n    with open_workspace(copy, SandboxSettings()):\n        pass\n"
        "except SandboxError as e:\n    said = str(e)\n"
        "with open_workspace(copy, SandboxSettings(kind='none')) as w:\n    plain = w.run('echo ran', timeout_s=20).stdout\n"
        "print(json.dumps([said, capabilities(), plain]))\n"
    )
    shut = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -c "$1"'
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "--user", "--map-root-user", "true"], check=False).returncode
    ):
        pytest.skip("no user namespace to shut off")
    argv = ["unshare", "--user", "--map-root-user", "sh", "-c", shut, sys.executable, script]
    result = subprocess.run(argv, capture_output=True, text=True, check=True)
    said, found, plain = json.loads(result.stdout)
    assert said.startswith("no sandbox on this machine (bwrap: ")
    assert said.endswith("allow user namespaces, or ask for sandbox=none by name")
    assert "\n" not in said
    assert (found["available"], found["why_not"], found["user"]) == (False, said, None)
    assert not any(found["holds"].values())
    assert plain == "ran\n"
