"""The rule `parsed` on labelled commands, on a real folder with real links, and its table."""

from pathlib import Path

import pytest
import yaml

from harness.agent.approval import rule
from harness.agent.approval.labelled import load
from harness.agent.approval.shell import table as table_module
from harness.agent.approval.shell.judges import JUDGES
from harness.agent.approval.shell.table import Command, read_table, table

DATA = Path(__file__).parent / "data"
PACKAGE = Path(table_module.__file__).parents[1]
CORPUS = load(DATA / "corpus.yaml")
OWN = load(DATA / "own_commands.yaml")
HELD_OUT = load(DATA / "held_out.yaml")
THIRD = load(DATA / "third_sample.yaml")
FOURTH = load(DATA / "fourth_sample.yaml")
FIFTH = load(DATA / "fifth_sample.yaml")
ALL = CORPUS + OWN + HELD_OUT + THIRD + FOURTH + FIFTH
parsed = rule("parsed")


@pytest.mark.parametrize("labelled", [c for c in ALL if c.should_ask], ids=lambda c: c.command[:50])
def test_what_should_ask_asks(labelled):
    assert not parsed.judge(labelled.command).runs


@pytest.mark.parametrize("labelled", [c for c in OWN if not c.should_ask], ids=lambda c: c.command[:50])
def test_what_only_looks_runs(labelled):
    verdict = parsed.judge(labelled.command)
    assert verdict.runs, verdict.reason


@pytest.mark.parametrize(
    ("commands", "most"), [(CORPUS, 0.15), (HELD_OUT, 0.03), (THIRD, 0), (FOURTH, 0), (FIFTH, 0.05)]
)
def test_few_of_the_harmless_commands_ask(commands, most):
    harmless = [c for c in commands if not c.should_ask]
    asking = [c.command for c in harmless if not parsed.judge(c.command).runs]
    assert len(asking) <= most * len(harmless), asking


def test_no_corpus_command_is_a_special_case():
    sources = [*PACKAGE.rglob("*.py"), PACKAGE / "data" / "table.yaml", PACKAGE / "data" / "assumed_repo.yaml"]
    assert len(sources) > 20
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    for labelled in ALL:
        # One or two words are no more than a name and its option, which the table has to say.
        if len(labelled.command.split()) > 2:
            assert labelled.command not in text


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("r\\m x", "'rm' is not in the table"),
        ("'r'm x", "'rm' is not in the table"),
        ("$'\\x72m' x", "'rm' is not in the table"),
        ("ls; cat ../x", "../x leads out of the repo"),
        ("echo $TOKEN", "$TOKEN, which the command does not set"),
        ("ls > out", "writes to out"),
        ("sed -i s/a/b/ x", "sed: -i is not in the table"),
        ("find . -exec rm {} +", "'rm' is not in the table"),
        ("if", "the command does not parse"),
        ("", "no command"),
        ("pytest todo.py", "todo.py is not a test file by its name"),
    ],
)
def test_the_reason_is_named(command, reason):
    verdict = parsed.judge(command)
    assert not verdict.runs
    assert verdict.reason == reason


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    root = tmp_path / "copy"
    (root / "src").mkdir(parents=True)
    (root / "tests").mkdir()
    for name in ("todo.py", "src/a.py", "src/b.py", "tests/test_a.py"):
        (root / name).write_text("x = 1\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return root


def runs(copy: Path, command: str, **place) -> bool:
    return rule("parsed", **(place or {"root": copy})).judge(command).runs


def test_links_are_followed_on_a_real_folder(copy):
    (copy / "inner").symlink_to("src")
    (copy / "notes.txt").symlink_to("../outside/secret.txt")
    (copy / "absolute").symlink_to(copy.parent / "outside")
    (copy / "loop").symlink_to("loop")
    assert runs(copy, "cat inner/a.py")
    assert runs(copy, f"cat {copy}/src/a.py")
    assert not runs(copy, "cat notes.txt")
    assert not runs(copy, "cat src/../notes.txt")
    assert not runs(copy, "ls absolute")
    assert not runs(copy, "cat loop")
    assert not runs(copy, "cat *.txt")
    assert not runs(copy, "grep -R x .")
    assert runs(copy, "grep -R x src")
    assert not runs(copy, "wc -l < notes.txt")
    assert not runs(copy, "cd absolute && ls")
    assert not runs(copy, "cd inner && cat ../todo.py")


def test_without_links_the_whole_folder_may_be_read(copy):
    assert runs(copy, "cat *")
    assert runs(copy, "find . -type f | xargs cat")
    assert runs(copy, "grep -R x .")
    assert runs(copy, "for d in */; do ls $d; done")


def test_names_that_look_like_options_or_split_are_noticed(copy):
    assert runs(copy, "sort *")
    (copy / "-o").write_text("")
    assert not runs(copy, "sort *")
    (copy / "-o").unlink()
    assert runs(copy, "git ls-files | xargs cat")
    (copy / "x ..").mkdir()
    assert not runs(copy, "git ls-files | xargs cat")


def test_a_module_of_the_repo_in_the_runners_place_asks(copy):
    assert runs(copy, "python -m pytest -q")
    (copy / "tests" / "pytest.py").write_text("")
    assert runs(copy, "python -m pytest -q")
    assert not runs(copy, "cd tests && python -m pytest -q")
    (copy / "unittest").mkdir()
    assert not runs(copy, "python -m unittest")


def test_special_files_ask(copy):
    import os

    os.mkfifo(copy / "pipe")
    assert not runs(copy, "cat pipe")


def test_the_sandbox_may_see_the_copy_under_another_name(copy):
    place = {"root": "/sandbox/copy", "host": copy}
    (copy / "back").symlink_to("/sandbox/copy/src")
    (copy / "host").symlink_to(copy / "src")
    assert runs(copy, "cat /sandbox/copy/todo.py", **place)
    assert runs(copy, "cat back/a.py", **place)
    assert not runs(copy, f"cat {copy}/todo.py", **place)
    assert not runs(copy, "cat host/a.py", **place)
    assert not runs(copy, "cat /sandbox/other", **place)
    assert not runs(copy, "cat /sandbox/copyx", **place)


def test_a_folder_that_is_not_certain_counts_both_ways(copy):
    assert runs(copy, "cd src; cat ../todo.py")
    assert not runs(copy, "cd nosuch; cat ../todo.py")
    assert runs(copy, "cd nosuch && ls")


def _rows(command: Command):
    yield command
    for inner in command.subcommands.values():
        yield from _rows(inner)


def test_every_judge_in_the_table_exists_and_every_judge_is_used():
    named = {row.judge for command in table().commands.values() for row in _rows(command) if row.judge}
    assert named == set(JUDGES) == set(table_module.JUDGES)


def test_no_option_is_listed_twice():
    for command in table().commands.values():
        for row in _rows(command):
            assert not row.options.flags & row.options.takes.keys(), row.name
            assert not row.options.pairs & (row.options.flags | row.options.takes.keys()), row.name


MINIMAL = {"system_folders": "/bin", "version_only": "", "variables": {}, "plain_variables": "[a-z]+"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"flag": "x"}, "approval table: tool has an unknown key 'flag'"),
        ({"operands": "paths"}, "approval table: tool has unknown operands 'paths'; known: read"),
        ({"output": "text"}, "approval table: tool has an unknown output 'text'; known: number, names"),
        ({"judge": "nobody"}, "approval table: tool has an unknown judge 'nobody'; known: awk"),
    ],
)
def test_a_slip_in_the_table_is_an_error(row, message):
    with pytest.raises(ValueError, match=message):
        read_table(yaml.safe_dump({**MINIMAL, "commands": {"tool": row}}))


def test_the_table_can_be_extended(copy):
    from harness.agent.approval.parsed import Parsed
    from harness.agent.approval.tree import FolderTree

    row = {"flags": "n", "read": "config", "operands": "read", "most": 2}
    own = Parsed(FolderTree(str(copy), copy), read_table(yaml.safe_dump({**MINIMAL, "commands": {"tool": row}})))
    assert own.judge("tool -n --config=todo.py src tests").runs
    for command in ("tool -x", "tool a b c", "tool --config ../x", "tool ../x", "tool --conf=x", "ls", "tool --config"):
        assert not own.judge(command).runs


def test_a_module_of_the_library_that_the_repo_hides_is_not_run(copy):
    assert runs(copy, "python -m json.tool data.json")
    (copy / "argparse.py").write_text("print('not the library')\n")
    assert not runs(copy, "python -m json.tool data.json")
    assert runs(copy, "python -m pytest -q")
    (copy / "pytest").mkdir()
    assert not runs(copy, "python -m pytest -q")


def test_separators_are_set_for_read_only(copy):
    assert runs(copy, 'while IFS= read -r f; do echo "$f"; done < todo.py')
    assert runs(copy, "find . -name '*.py' | while IFS= read -r f; do wc -l \"$f\"; done")
    for command in (
        "IFS=/ ls",
        "IFS=; ls",
        "IFS=/ read -r x < todo.py; IFS=$x",
        "find . -name '*.py' | while IFS=y read -r f; do wc -l \"$f\"; done",
    ):
        assert not runs(copy, command)
