"""Tasks, fresh copies, the sandbox their commands run in, and grading."""

from harness.workspace.copy import Copy, fresh_copy
from harness.workspace.errors import SandboxError, TaskError
from harness.workspace.grading import grade, grade_hidden_only
from harness.workspace.sandbox import LocalWorkspace, open_workspace
from harness.workspace.tasks import Task, list_tasks, load_task
from harness.workspace.tree import Tree, changes, diff, lay, snapshot

__all__ = [
    "Copy",
    "LocalWorkspace",
    "SandboxError",
    "Task",
    "TaskError",
    "Tree",
    "changes",
    "diff",
    "fresh_copy",
    "grade",
    "grade_hidden_only",
    "lay",
    "list_tasks",
    "load_task",
    "open_workspace",
    "snapshot",
]
