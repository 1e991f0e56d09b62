"""What the sandbox can hold on this machine: tried out, not read from system settings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from harness.settings import SandboxSettings
from harness.workspace.copy import Copy
from harness.workspace.errors import SandboxError
from harness.workspace.sandbox import LocalWorkspace, how_sandboxed, open_workspace

SMALL = SandboxSettings(memory_bytes=256 * 2**20, processes=16, file_bytes=2**20, output_bytes=2**16)

# Each command exits 0 exactly when the barrier it runs against stands. None of them can do harm where it does not.
PROBES = {
    "interpreter": "python -c 'import pytest'",
    "home": "! touch ~/written",
    "system": "! touch /usr/written /etc/written",
    "network": """python -c 'import socket; print([name for _, name in socket.if_nameindex()])' | grep -qx "\\['lo'\\]" """,
    "memory": "! python -c 'bytearray(2**29)'",
    "file_size": "! head -c 2000000 /dev/zero > large",
    "processes": "python forks.py",
}
FORKS = """
import os, sys, time
made = 0
for _ in range(40):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    made += 1
sys.exit(made >= 40)
"""


def capabilities() -> dict[str, Any]:
    """{available, why_not, user, holds: {barrier: bool}, notes}: for `calledshot doctor`; takes about a second.

    user: `other_user` (commands run as an id of their own), `user_namespace` (as ourselves, with no rights), null when unavailable.
    """
    try:
        user = how_sandboxed()
    except SandboxError as e:
        return {"available": False, "why_not": str(e), "user": None, "holds": dict.fromkeys(PROBES, False), "notes": []}
    with tempfile.TemporaryDirectory() as folder:
        root, scratch = Path(folder, "project"), Path(folder, "tmp")
        root.mkdir()
        scratch.mkdir()
        (root / "forks.py").write_text(FORKS)
        with open_workspace(Copy(root, scratch), SMALL) as workspace:
            holds = {name: _holds(workspace, command) for name, command in PROBES.items()}
    notes = []
    if not holds["processes"]:
        why = "root without user ids to spare" if os.geteuid() == 0 else "a kernel older than 5.14"
        notes.append(f"the number of processes can't be limited here ({why})")
    return {"available": True, "why_not": None, "user": user, "holds": holds, "notes": notes}


def _holds(workspace: LocalWorkspace, command: str) -> bool:
    return workspace.run(command, timeout_s=20).exit_code == 0
