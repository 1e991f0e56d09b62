"""What a person at the command line sees when the machine or the request is at fault: one line, no traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.models import ModelError
from harness.paths import PACKAGE, new_study_root


def calledshot(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["calledshot", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code


def test_a_model_file_that_is_not_there_is_one_line(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone.gguf"
    code = calledshot(
        monkeypatch, "run", "model=gguf", "model.name=mine", f"model.path={gone}", "--dry", "--runs", tmp_path
    )
    assert code == 2
    assert capsys.readouterr().err.strip() == f"calledshot: no model file at {gone}"


def test_every_model_error_is_one_that_the_command_line_and_a_failed_run_know():
    assert issubclass(ModelError, ValueError)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "conf").write_text("a file where a folder has to be")
    code = calledshot(monkeypatch, "new", "experiment", "mine", "--study", tmp_path)
    said = capsys.readouterr().err.strip()
    assert code == 1
    assert said.startswith(f"calledshot: {tmp_path / 'conf'}")
    assert len(said.splitlines()) == 1


def test_something_new_is_written_here_and_never_into_the_installed_harness(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new_study_root(None) == Path.cwd()
    assert new_study_root(tmp_path) == tmp_path.resolve()


def test_in_a_subfolder_of_the_checkout_the_checkout_is_the_study(monkeypatch):
    monkeypatch.chdir(PACKAGE / "cli")
    assert new_study_root(None) == PACKAGE.parent


def test_a_cell_with_a_list_in_it_is_shown_whole(tmp_path, monkeypatch, capsys):
    """Square brackets are no markup in a table."""
    monkeypatch.setenv("COLUMNS", "400")
    cell = [
        "server=scripted",
        "server.scenario=solves",
        "task=cart",
        "agent.tools=[read_file,bash]",
        "--runs",
        tmp_path,
    ]
    assert calledshot(monkeypatch, "run", *cell, "--dry") == 0
    assert "[read_file,bash]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["context.policy=magic"], "context.policy: 'magic' is not one of"),
        (["context=kv_shift"], "context.policy: kv_shift needs server.cache_reuse above 0"),
        (["context=guarded", "context.clear=[foo]"], "context.clear: no kind named foo"),
        (["context=guarded", "context.clear=[thinking]"], "context.ledger: needs results"),
        (["context=guarded", "context.trigger=inf"], "context.trigger: needs a fraction or a reserve above 0"),
        (["context=guarded", "context.trigger=8192"], "context.trigger: a reserve of 8192 tokens leaves nothing"),
        (["context=guarded", "server.max_tokens=9000"], "server.max_tokens: a reserve of 9000 tokens leaves nothing"),
        (["context=published", "context.trigger=500"], "context.trigger: published takes a fraction"),
        (["approval.rule=magic"], "approval.rule: no approval rule named 'magic'"),
        (["agent.prompt=magic"], "agent.prompt: 'magic' is not one of"),
    ],
)
def test_settings_that_no_run_can_start_with_are_refused_before_any_does(tmp_path, monkeypatch, capsys, asked, words):
    """Also of the last cell of a grid: no model is loaded for the ones before it."""
    cell = ["task=todo", "server=scripted", "server.scenario=solves", "server.n_ctx=8192", *asked]
    code = calledshot(monkeypatch, "run", *cell, "--runs", tmp_path)
    said = capsys.readouterr().err.strip()
    assert code == 2
    assert said.startswith(f"calledshot: {words}")
    assert len(said.splitlines()) == 1
    assert not list(tmp_path.iterdir())
