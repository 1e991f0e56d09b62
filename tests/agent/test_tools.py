"""The tools on a real copy: results, refusals, and that nothing ever leaves as an exception."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.tools.base import BAD_ARGUMENTS, Tool, ToolError, call
from harness.agent.tools.fetch import check_url, fetch_tool
from harness.agent.tools.files import file_tools
from harness.agent.tools.search import search_tools
from harness.agent.tools.steady import steady
from harness.agent.workspace import CommandResult, TreeChange
from harness.workspace.paths import resolve


class Folder:
    """A workspace over a plain folder, for tools that run no command."""

    mount = "/srv/project"

    def __init__(self, root: Path) -> None:
        self.root = root

    def resolve(self, path: str) -> Path:
        return resolve(self.root, self.mount, path)

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        raise AssertionError("no command is expected here")

    def tree_change(self) -> TreeChange | None:
        return None


class Notes(list):
    def emit(self, event: str, **fields: object) -> None:
        self.append((event, fields))


@pytest.fixture
def same() -> list[str]:
    return []


@pytest.fixture
def tools(tmp_path: Path, same: list[str]) -> dict[str, Tool]:
    root = tmp_path / "repo"
    (root / "pkg").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / "a.py").write_text("one\ntwo\ntwo\n")
    (root / "pkg" / "b.py").write_text("import a\n")
    (root / "picture.bin").write_bytes(b"\xff\x00\xfe")
    (tmp_path / "outside.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    workspace = Folder(root)
    made = file_tools(workspace, same_content_notice=False, on_same=same.append) + search_tools(workspace)
    return {t.name: t for t in made}


def test_files_are_listed_sorted_without_dot_paths(tools):
    assert call(tools, "list_files", "").text.splitlines() == ["a.py", "link.txt", "picture.bin", "pkg/b.py"]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("read_file", '{"path": "a.py"}', "one\ntwo\ntwo\n"),
        ("read_file", '{"path": "/srv/project/a.py"}', "one\ntwo\ntwo\n"),
        ("read_file", '{"path": "no.py"}', "error: no.py does not exist"),
        ("read_file", '{"path": "pkg"}', "error: pkg is not a file"),
        ("read_file", '{"path": "picture.bin"}', "error: picture.bin is not a text file"),
        ("read_file", '{"path": "../outside.txt"}', "error: ../outside.txt is outside the repo"),
        ("read_file", '{"path": "link.txt"}', "error: link.txt is outside the repo"),
        ("read_file", '{"path": "/etc/passwd"}', "error: /etc/passwd is outside the repo"),
        ("write_file", '{"path": "new/deep/c.py", "content": "héllo"}', "wrote 5 characters to new/deep/c.py"),
        ("write_file", '{"path": "../x", "content": ""}', "error: ../x is outside the repo"),
        ("edit_file", '{"path": "a.py", "old": "one", "new": "1"}', "edited a.py"),
        (
            "edit_file",
            '{"path": "a.py", "old": "two", "new": "2"}',
            "error: old appears 2 times in a.py, it must appear exactly once",
        ),
        (
            "edit_file",
            '{"path": "a.py", "old": "ten", "new": "2"}',
            "error: old appears 0 times in a.py, it must appear exactly once",
        ),
        (
            "edit_file",
            '{"path": "a.py", "old": "", "new": "2"}',
            "error: old appears 0 times in a.py, it must appear exactly once",
        ),
        ("read_file", '{"path": "a.py"', BAD_ARGUMENTS),
        ("read_file", "[1]", BAD_ARGUMENTS),
        ("read_file", "{}", "error: read_file needs path"),
        ("read_file", '{"path": 3}', "error: read_file: path must be text"),
        ("read_file", '{"path": "a.py", "lines": 3}', "error: read_file has no argument lines"),
        ("open_file", "{}", "error: no tool named open_file"),
        ("glob", '{"pattern": "*.py"}', "a.py\npkg/b.py"),
        ("glob", '{"pattern": "**/*.py"}', "a.py\npkg/b.py"),
        ("glob", '{"pattern": "*.rs"}', "no files"),
        ("grep", '{"pattern": "^t", "files": "a.py"}', "a.py:2:two\na.py:3:two"),
        ("grep", '{"pattern": "import"}', "pkg/b.py:1:import a"),
        (
            "grep",
            '{"pattern": "("}',
            "error: not a regular expression: missing ), unterminated subpattern at position 0",
        ),
    ],
)
def test_text_to_the_model(tools, name, arguments, text):
    assert call(tools, name, arguments).text == text


def test_the_same_content_again_is_noticed(tools, same):
    again = '{"path": "a.py", "content": "one\\ntwo\\ntwo\\n"}'
    assert call(tools, "write_file", again).text == "wrote 12 characters to a.py"
    assert same == ["a.py"]


def test_the_notice_of_the_same_content(tmp_path):
    (tmp_path / "a").write_text("x")
    (_, _, write, _) = file_tools(Folder(tmp_path), same_content_notice=True, on_same=lambda _: None)
    assert (
        "already had exactly this content"
        in call({"write_file": write}, "write_file", '{"path": "a", "content": "x"}').text
    )


@given(
    name=st.sampled_from(["read_file", "write_file", "edit_file", "glob", "grep", "list_files", "zzz"]),
    raw=st.text(max_size=60),
)
def test_no_arguments_whatever_crash_a_call(tmp_path_factory, name, raw):
    workspace = Folder(tmp_path_factory.mktemp("copy"))
    made = file_tools(workspace, same_content_notice=True, on_same=lambda _: None) + search_tools(workspace)
    assert isinstance(call({t.name: t for t in made}, name, raw).text, str)


@given(path=st.text(max_size=30))
def test_no_path_reads_outside(tmp_path_factory, path):
    outer = tmp_path_factory.mktemp("outer")
    (outer / "secret").write_text("secret")
    (outer / "repo").mkdir()
    made = {t.name: t for t in file_tools(Folder(outer / "repo"), same_content_notice=False, on_same=lambda _: None)}
    for form in (path, f"../{path}", f"/{path}", f"{path}/../../secret"):
        try:
            text = made["read_file"].run(form)
        except Exception:
            continue
        assert text != "secret"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://other/", "http://u:p@ok/", "http://ok:81/", "ok", "http://ok:x/", "http://"]
)
def test_fetch_refuses_what_is_not_allowed(url):
    with pytest.raises(ToolError):
        check_url(url, ("ok",))


def test_fetch_reads_an_allowed_host_and_follows_no_redirect_out(http_site):
    notes = Notes()
    tool = fetch_tool((http_site.host,), notes)
    assert call({"fetch": tool}, "fetch", f'{{"url": "{http_site.url}/page"}}').text == "hello"
    assert notes[0][1]["kind"] == "fetch"
    refused = call({"fetch": tool}, "fetch", f'{{"url": "{http_site.url}/away"}}')
    assert "not an allowed host" in refused.text
    assert "answered 404" in call({"fetch": tool}, "fetch", f'{{"url": "{http_site.url}/no"}}').text
    assert "[cut at 200000 bytes]" in call({"fetch": tool}, "fetch", f'{{"url": "{http_site.url}/big"}}').text


def test_equal_runs_give_equal_output_text():
    one = "3 passed in 0.12s\n<C object at 0x7f3a2b1c0d50> in 12.5s (0:00:12)\nRan 2 tests in 0.001s\nx = 0x1f\n"
    other = "3 passed in 4.56s\n<C object at 0x55aa00bb11cc> in 99.9s (0:01:39)\nRan 2 tests in 0.003s\nx = 0x1f\n"
    assert steady(one) == steady(other) == steady(steady(one))
    assert steady("def f():\n    return 1.5\n") == "def f():\n    return 1.5\n"
