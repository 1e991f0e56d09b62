"""list_files, read_file, write_file, edit_file: the published file tools (rules.md sections 3 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.agent.files_below import files_below
from harness.agent.tools.base import Tool, ToolError
from harness.agent.workspace import OutsideWorkspace, Workspace

PATH = {"type": "string", "description": "file path, relative to the repo"}
MOST_BYTES = 16 * 2**20  # of a file that is read into a message; one of holes may say any size
SAME_CONTENT = "the file already had exactly this content; nothing changed"


def visible_files(root: Path) -> list[str]:
    """Every file below root, sorted, relative; paths with a part that starts with a dot are left out, links not followed."""
    return sorted(
        name for name in files_below(root, hidden=False) if not ((root / name).is_symlink() and (root / name).is_dir())
    )


def resolve(workspace: Workspace, path: str) -> Path:
    """The file a path names, or the published refusal."""
    try:
        return workspace.resolve(path)
    except OutsideWorkspace as e:
        raise ToolError(f"{path} is outside the repo") from e


def read_text(workspace: Workspace, path: str) -> str:
    target = resolve(workspace, path)
    if not target.exists():
        raise ToolError(f"{path} does not exist")
    if not target.is_file():
        raise ToolError(f"{path} is not a file")
    if target.stat().st_size > MOST_BYTES:
        raise ToolError(f"{path} is larger than {MOST_BYTES >> 20} MiB")
    try:
        return target.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise ToolError(f"{path} is not a text file") from e


def file_tools(workspace: Workspace, *, same_content_notice: bool, on_same: Callable[[str], None]) -> list[Tool]:
    """same_content_notice: say so when a write changed nothing. on_same: told of every such write, notice or not."""

    def list_files() -> str:
        return "\n".join(visible_files(workspace.root))

    def read_file(path: str) -> str:
        return read_text(workspace, path)

    def write_file(path: str, content: str) -> str:
        target = resolve(workspace, path)
        data = content.encode("utf-8", errors="surrogatepass")
        same = target.is_file() and target.stat().st_size == len(data) and target.read_bytes() == data
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        text = f"wrote {len(content)} characters to {path}"
        if same:
            on_same(path)
            if same_content_notice:
                return f"{text} ({SAME_CONTENT})"
        return text

    def edit_file(path: str, old: str, new: str) -> str:
        text = read_text(workspace, path)
        count = text.count(old) if old else 0
        if count != 1:
            raise ToolError(f"old appears {count} times in {path}, it must appear exactly once")
        resolve(workspace, path).write_bytes(text.replace(old, new).encode("utf-8", errors="surrogatepass"))
        return f"edited {path}"

    content = {"type": "string", "description": "the whole new content"}
    old = {"type": "string", "description": "text that occurs exactly once in the file"}
    new = {"type": "string", "description": "the text to put in its place"}
    return [
        Tool("list_files", "List all files of the repo.", {}, list_files),
        Tool("read_file", "Read a text file.", {"path": PATH}, read_file),
        Tool("write_file", "Write a whole file; folders are made.", {"path": PATH, "content": content}, write_file),
        Tool("edit_file", "Replace one piece of a file.", {"path": PATH, "old": old, "new": new}, edit_file),
    ]
