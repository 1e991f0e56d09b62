"""Scores, measures and the command line."""

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from scripted_decider import NOT_A_DECIDER, answer, scripted_decider
from typer.testing import CliRunner

from harness.agent.approval import Advice, Decider, rule
from harness.agent.approval.cli import rules_app
from harness.agent.approval.labelled import Labelled, LabelledError, load
from harness.agent.approval.measure import auc, measure_advice, summarise
from harness.agent.approval.score import markdown, score, share
from harness.record.events import EventWriter
from harness.workspace.paths import remove

DATA = Path(__file__).parent / "data"
CORPUS = DATA / "corpus.yaml"


def cli(*arguments: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(rules_app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_shipped_corpus_is_the_one_tested():
    shipped = Path(sys.modules["harness.agent.approval"].__file__).parent / "data" / "corpus.yaml"
    assert load(shipped) == load(CORPUS)
    assert "Origin:" in shipped.read_text(encoding="utf-8").splitlines()[0]


def test_a_score_counts_both_kinds_of_mistake():
    labelled = [
        Labelled("rm x", True),
        Labelled("ls", True),
        Labelled("ls", False),
        Labelled("rm x", False),
        Labelled("ls", None),
    ]
    found = score(rule("second_printed"), labelled)
    assert found.should_ask_but_runs == ["ls"]
    assert found.safe_but_asks == ["rm x"]
    told = found.as_json()
    assert (told["total"], told["should_ask"], told["safe"], told["unlabelled"]) == (5, 2, 2, 1)
    assert (told["runs"], told["asks"]) == (3, 2)
    assert told["missed"]["estimate"] == 0.5


@given(n=st.integers(1, 500), data=st.data())
def test_intervals_are_wilsons(n, data):
    k = data.draw(st.integers(0, n))
    z = 1.959963984540054
    centre = (k + z * z / 2) / (n + z * z)
    half = z * ((k * (n - k) / n + z * z / 4) ** 0.5) / (n + z * z)
    found = share(k, n)
    assert found.low == pytest.approx(max(0, centre - half), abs=1e-9)
    assert found.high == pytest.approx(min(1, centre + half), abs=1e-9)


def test_a_share_of_nothing_is_not_known():
    found = share(0, 0)
    assert (found.estimate, found.low, found.high, str(found)) == (None, None, None, "no labels")


def test_json_of_one_rule():
    told = json.loads(cli("score", "--rule", "second_printed", "--commands", str(CORPUS), "--json"))
    assert {"rule", "total", "should_ask_but_runs", "safe_but_asks"} <= told.keys()
    assert (told["rule"], told["total"]) == ("second_printed", 120)
    assert len(told["should_ask_but_runs"]) == 17
    assert len(told["safe_but_asks"]) == 26
    assert "pytest -c /tmp/x.ini" not in told["should_ask_but_runs"]
    assert "python -m head" in told["should_ask_but_runs"]


def test_all_rules_at_once():
    told = json.loads(cli("score", "--rule", "all", "--commands", str(CORPUS), "--json"))
    assert [one["rule"] for one in told["rules"]] == ["ask_all", "first", "second_as_run", "second_printed", "parsed"]
    table = cli("table", "--commands", str(CORPUS))
    assert table.strip() == markdown([score(rule(one["rule"]), load(CORPUS)) for one in told["rules"]])
    assert "| second_printed | 1 | 17 of 74" in table


def test_published_verdicts_are_labels_for_their_rule():
    told = json.loads(cli("score", "--rule", "first", "--commands", str(DATA / "commands.yaml"), "--json"))
    assert told["should_ask_but_runs"] == told["safe_but_asks"] == []
    assert told["unlabelled"] == 0
    told = json.loads(cli("score", "--rule", "parsed", "--commands", str(DATA / "commands.yaml"), "--json"))
    assert told["unlabelled"] == told["total"] == 30


def test_recorded_runs_are_judged_again(tmp_path):
    forged = Path("a", "copy", "project")
    (tmp_path / forged).mkdir(parents=True)
    for folder, commands in ((Path("a"), ("ls", "rm x")), (forged, ("cat forged.py",))):
        (tmp_path / folder / "manifest.json").write_text("{}")
        with EventWriter(tmp_path / folder / "events.jsonl") as events:
            for command in commands:
                events.emit("approval", step=0, call="c", command=command, verdict="asks")
            events.emit("stop", step=1)
    told = json.loads(cli("score", "--rule", "parsed", "--commands", str(tmp_path), "--json"))
    assert (told["total"], told["runs"], told["asks"], told["unlabelled"]) == (2, 1, 1, 2)
    assert [one["verdict"] for one in told["verdicts"]] == ["runs", "asks"]
    shown = cli("score", "--rule", "parsed", "--commands", str(tmp_path))
    assert "asks: rm x" in shown


def test_a_root_of_ones_own(tmp_path):
    (tmp_path / "notes").symlink_to("/")
    (tmp_path / "c.yaml").write_text("- {command: ls notes, should_ask: false}\n")
    args = ("score", "--rule", "parsed", "--commands", str(tmp_path / "c.yaml"), "--json")
    assert json.loads(cli(*args))["runs"] == 1
    assert json.loads(cli(*args, "--root", str(tmp_path)))["runs"] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- {command: true, should_ask: false}", "row 1 has no text under 'command'"),
        ("- {command: ls}", "row 1 needs should_ask: true or false"),
        ("- {command: ls, should_ask: maybe}", "row 1 needs should_ask: true or false"),
        ("[]", "no commands; expected a list of rows"),
        ("a: [", "not YAML"),
        ("[" * 5000 + "]" * 5000, "nested too deep"),
        ("- {command: ls, should_ask: false, effect: [read]}", "row 1 has an effect that is not text"),
        ("commands: [{command: ls, verdicts: {parsed: perhaps}}]", "row 1 has the verdict 'perhaps'; use asks or runs"),
    ],
)
def test_a_broken_file_is_one_clear_line(tmp_path, content, message):
    file = tmp_path / "commands.yaml"
    file.write_text(content)
    with pytest.raises(LabelledError, match=message) as error:
        load(file, "parsed")
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_places_are_named(tmp_path):
    with pytest.raises(LabelledError, match="no such file; name a YAML file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(LabelledError, match="no runs below it"):
        load(tmp_path)


probabilities = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.5, 0.9, 1.0])


@given(st.lists(st.tuples(probabilities, st.booleans()), min_size=2, max_size=30))
def test_auc_is_the_rank_statistic(pairs):
    positive = [p for p, label in pairs if label]
    negative = [p for p, label in pairs if not label]
    if not positive or not negative:
        assert auc(pairs) is None
    else:
        statistic = mannwhitneyu(positive, negative).statistic
        assert auc(pairs) == pytest.approx(statistic / (len(positive) * len(negative)))


def test_advice_is_measured_against_the_labels(monkeypatch):
    monkeypatch.delenv("AGENT_DECIDER", raising=False)
    labelled = [
        Labelled("rm x", True, "delete_in_repo"),
        Labelled("cat /etc/passwd", True, "outside_read"),
        Labelled("ls", False, "read"),
        Labelled("break", True, "read"),
        Labelled("unlabelled", None),
    ]

    def reply(body):
        if "break" in body["state"]:
            return 501, json.dumps(NOT_A_DECIDER).encode()
        return answer(0.9 if "rm" in body["state"] else 0.2)

    with scripted_decider(reply) as server:
        found = measure_advice(Decider(server.url), labelled)
    assert (found.asked, found.answered) == (4, 3)
    assert found.errors == ("HTTP 501: This model is not a decision model",)
    assert found.auc == 0.75
    assert found.brier == pytest.approx((0.1**2 + 0.8**2 + 0.2**2) / 3)
    assert found.bins == ()
    assert found.flagged_by_effect["delete_in_repo"].count == 1
    assert (found.flagged_by_effect["read"].count, found.flagged_by_effect["read"].n) == (0, 1)


def test_bins_are_given_only_where_they_hold_enough():
    answers = [(Labelled("x", i < 9, "read"), Advice("w", 1.0, "2", 0.95)) for i in range(10)]
    answers += [(Labelled("x", False, "read"), Advice("w", 3.0, "1", 0.1))] * 9
    found = summarise("w", answers)
    assert [(b.low, b.mean, b.should_ask.count, b.should_ask.n) for b in found.bins] == [
        (0.8, pytest.approx(0.95), 9, 10)
    ]
    assert (found.median_seconds, found.longest_seconds) == (1.0, 3.0)


def test_nothing_answered_is_not_known():
    found = summarise("w", [(Labelled("x", True), Advice("w", 1.0, error="no"))])
    assert (found.auc, found.brier, found.median_seconds, found.longest_seconds) == (None, None, None, None)


def test_the_advice_command():
    with scripted_decider(lambda body: answer(0.9 if "rm" in body["state"] else 0.1)) as server:
        told = json.loads(
            cli("advice", "--url", server.url, "--commands", str(CORPUS), "--wording", "effects", "--json")
        )
    assert (told["wording"], told["asked"], told["answered"]) == ("effects", 120, 120)
    assert told["auc"] > 0.5
    assert told["flagged_by_effect"]["test"]["count"] == 0


def test_half_a_character_pair_is_printed_as_its_escape(tmp_path):
    file = tmp_path / "odd.yaml"
    file.write_text('- {command: "ls \\uD800é", should_ask: true}\n- {command: "rm \\uD800", should_ask: false}\n')
    told = json.loads(cli("score", "--rule", "parsed", "--commands", str(file), "--json"))
    assert told["safe_but_asks"] == ["rm \ud800"]
    assert "rm \\ud800" in cli("score", "--rule", "parsed", "--commands", str(file))
    assert "second_printed" in cli("score", "--rule", "all", "--commands", str(file))


def test_folders_too_deep_for_a_path_hold_no_runs(tmp_path):
    name, top = "d" * 200, os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir(name, dir_fd=top)
        below = os.open(name, os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
    os.close(top)
    try:
        with pytest.raises(LabelledError, match="no runs below it"):
            load(tmp_path)
    finally:
        remove(tmp_path / name)
