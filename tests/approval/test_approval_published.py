"""The published rules: every verdict the articles state or imply, and no crash on any text."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.approval import RULES, rule
from harness.agent.approval.labelled import load
from harness.agent.approval.parsed import UNREADABLE
from harness.agent.approval.score import score

DATA = Path(__file__).parent / "data"
PUBLISHED = ("ask_all", "first", "second_as_run", "second_printed")
QUOTED = yaml.safe_load((DATA / "commands.yaml").read_text(encoding="utf-8"))["commands"]

shell_text = st.text(st.sampled_from("ls cat-m=/~.;&|<>$`'\"\\\n\t{}()[]*?#!0129é\u0441\0\r"), max_size=60)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("row", QUOTED, ids=lambda row: row["command"][:40])
def test_the_verdicts_of_the_articles_hold(name, row):
    verdict = rule(name).judge(row["command"])
    assert ("runs" if verdict.runs else "asks") == row["verdicts"][name], verdict.reason


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("echo hi 2>/dev/nullx", True),
        ("ls 2>/dev2>&1/null", True),
        ("python -m cat a", True),
        ("grep 'a|b' f", False),
        ("ls;", False),
        ("ls; pwd", True),
        ("cat a..b", False),
        ("grep a=/x f", False),
        ("grep pre-exec f", False),
        ("python -m", False),
        ("", False),
        ("ls 'x", False),
        ("ls\tsrc", True),
        ("ls\nsrc", False),
    ],
)
def test_the_printed_rule_step_by_step(command, runs):
    assert rule("second_printed").judge(command).runs is runs


def test_the_two_second_rules_differ_where_the_article_says():
    before, printed = rule("second_as_run"), rule("second_printed")
    assert before.judge("ls & rm -rf todo.py").runs
    assert not printed.judge("ls & rm -rf todo.py").runs
    assert before.judge("pytest --basetemp=/x").runs
    assert not printed.judge("pytest --basetemp=/x").runs


def test_the_printed_rule_on_the_corpus_gives_the_measured_counts():
    found = score(rule("second_printed"), load(DATA / "corpus.yaml"))
    assert (found.missed.count, found.missed.n) == (17, 74)
    assert (found.needless.count, found.needless.n) == (26, 46)


@pytest.mark.parametrize("name", RULES)
@given(command=st.one_of(st.text(), shell_text))
def test_no_rule_crashes(name, command):
    verdict = rule(name).judge(command)
    assert verdict.reason
    assert not verdict.reason.startswith(UNREADABLE)


def test_an_unknown_rule_is_named():
    with pytest.raises(ValueError, match=r"no approval rule named 'thrid'; known: ask_all, first"):
        rule("thrid")
