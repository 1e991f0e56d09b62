"""Answerers: only a clear yes runs a command."""

import io

import pytest

from harness.agent.approval import REFUSAL, Advice, Verdict, answerer
from harness.agent.approval.answer import Terminal, printable

ASKS = Verdict(False, "'rm' is not in the table")


@pytest.mark.parametrize(
    ("typed", "runs"),
    [("y\n", True), (" Y \n", True), ("y", True), ("yes\n", False), ("n\n", False), ("\n", False), ("", False)],
)
def test_the_terminal_runs_only_on_y(typed, runs):
    shown = io.StringIO()
    answer = Terminal(io.StringIO(typed), shown)("rm x", ASKS, Advice("published", 0.1, "2", 0.957))
    assert answer is runs
    assert shown.getvalue() == "decision model: LOOK CLOSELY (0.96)\nasks: 'rm' is not in the table\nrm x [y/N] "


def test_a_command_cannot_repaint_the_question():
    shown = io.StringIO()
    Terminal(io.StringIO(""), shown)("rm x\x1b[2K\rls\u202e", ASKS, None)
    assert shown.getvalue().endswith("rm x\\x1b[2K\\rls\\u202e [y/N] ")
    assert printable("é\n\t") == "é\n\t"


def test_the_automatic_answers():
    assert answerer("auto_yes")("rm x", ASKS, None)
    assert not answerer("auto_no")("rm x", ASKS, None)
    with pytest.raises(ValueError, match="no answerer named 'maybe'; known: auto_yes, auto_no, terminal"):
        answerer("maybe")


def test_the_refusal_is_the_published_one():
    assert REFUSAL == "the user declined to run this command"
