"""Every way to move a prediction after the ball is caught or named, on real repositories and real run folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.prereg import Cell, RegistrationError
from harness.record.folder import read_json, run_id, write_json

from .lab import CELLS, PREDICTIONS, Lab, make_lab, verdicts, whys, words

FILE = "experiments/shot/predictions.yaml"
LOCK = "experiments/shot/registration.json"
EDITED = PREDICTIONS.replace("count(runs, solved) <= 1", "count(runs, solved) <= 0")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return make_lab(tmp_path)


@pytest.fixture
def played(lab: Lab) -> Lab:
    """Registered, committed, run: the honest case."""
    lab.register()
    lab.run_all()
    return lab


def edit_json(file: Path, **changes: Any) -> None:
    write_json(file, read_json(file) | changes)


def test_the_honest_case_is_registered(played: Lab) -> None:
    report = played.check()
    assert words(report) == {"s-1": "registered", "s-2": "registered"}
    assert verdicts(report) == {"s-1/1": "held", "s-2/1": "held"}
    assert report.problems == ()
    assert report.holds


def test_later_commits_and_more_runs_change_nothing(played: Lab) -> None:
    played.write("notes.md", "so far so good\n")
    played.commit()
    shutil.rmtree(played.made[-1])
    played.run(CELLS[-1], solved=True)
    assert played.check().holds


def test_before_the_first_run(lab: Lab) -> None:
    assert words(lab.check()) == {"s-1": "unregistered", "s-2": "unregistered"}
    lab.register(commit=False)
    assert words(lab.check()) == {"s-1": "unregistered", "s-2": "unregistered"}
    assert "not committed" in whys(lab.check())
    lab.commit()
    assert words(lab.check()) == {"s-1": "registered", "s-2": "registered"}


def test_runs_without_any_registration(lab: Lab) -> None:
    lab.run_all()
    report = lab.check()
    assert words(report) == {"s-1": "unregistered", "s-2": "unregistered"}
    assert not report.holds


@pytest.mark.parametrize("committed", [True, False])
def test_edited_after_the_run(played: Lab, committed: bool) -> None:
    played.write(FILE, EDITED)
    if committed:
        played.commit("nothing to see here")
    report = played.check()
    assert words(report) == {"s-1/1": "registered", "s-2/1": "registered", "s-2/None": "changed"}
    assert f"{FILE}: changed since it was registered" in report.problems
    assert not report.holds


def test_edited_and_registered_anew_as_if_for_the_first_time(played: Lab) -> None:
    played.write(FILE, EDITED)
    (played.folder / LOCK).unlink()
    played.commit()
    played.register()
    report = played.check()
    assert words(report) == {"s-1": "changed", "s-2": "changed"}
    assert "none of those that stand now" in whys(report)


def test_registration_taken_away(played: Lab) -> None:
    (played.folder / LOCK).unlink()
    played.commit()
    report = played.check()
    assert words(report) == {"s-1": "changed", "s-2": "changed"}
    assert "which is gone" in whys(report)


def test_registration_edited_by_hand(played: Lab) -> None:
    lock = played.folder / LOCK
    text = lock.read_text(encoding="utf-8")
    for old, new in (("<= 1", "<= 0"), ('"cart": "d1"', '"cart": "d2"'), ('"seed": 2', '"seed": 3')):
        assert old in text
        lock.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(RegistrationError, match="edited by hand"):
            played.check()


def test_registered_after_the_run(lab: Lab) -> None:
    lab.run_all()
    lab.register()
    report = lab.check()
    assert words(report) == {"s-1": "late", "s-2": "late"}
    assert "holds no registration" in whys(report)


def test_registered_but_committed_after_the_run(lab: Lab) -> None:
    lab.register(commit=False)
    lab.run_all()
    lab.commit()
    report = lab.check()
    assert words(report) == {"s-1": "late", "s-2": "late"}
    assert f"made from a dirty tree: {LOCK}" in whys(report)


def test_a_forged_date_does_not_help(lab: Lab) -> None:
    lab.run_all()
    lab.clock = "2001-01-01T00:00:00Z"
    lab.register()
    assert words(lab.check()) == {"s-1": "late", "s-2": "late"}


def test_a_replaced_commit_does_not_help(lab: Lab) -> None:
    lab.run_all()
    ran_at = lab.git("rev-parse", "HEAD")
    lab.register()
    lab.git("replace", ran_at, lab.git("rev-parse", "HEAD"))
    assert words(lab.check()) == {"s-1": "late", "s-2": "late"}


def test_one_late_run_makes_its_line_late_and_is_named(lab: Lab) -> None:
    early = lab.run(CELLS[0], solved=False)
    lab.register()
    lab.run_all(CELLS[1:])
    report = lab.check()
    assert words(report) == {"s-1": "registered", "s-2": "late"}
    assert f"({early.name})" in whys(report)


@pytest.mark.parametrize("collected", [False, True])
def test_rewritten_history(played: Lab, collected: bool) -> None:
    """The same files in a new commit: the registration's commit is no ancestor of the runs' any more."""
    first = played.git("rev-list", "--max-parents=0", "HEAD")
    played.git("reset", "-q", "--soft", first)
    played.commit("registered all along")
    if collected:
        played.git("reflog", "expire", "--expire=now", "--all")
        played.git("gc", "-q", "--prune=now")
    report = played.check()
    assert words(report) == {"s-1": "unverifiable", "s-2": "unverifiable"}
    assert "rewritten" in whys(report)
    assert not report.holds


def test_rewritten_history_with_other_predictions(played: Lab) -> None:
    first = played.git("rev-list", "--max-parents=0", "HEAD")
    played.git("reset", "-q", "--hard", first)
    played.write(FILE, EDITED)
    played.git("commit", "-q", "-a", "--amend", "-m", "predictions")
    played.register()
    assert words(played.check()) == {"s-1": "changed", "s-2": "changed"}


def test_shallow_clone_is_unverifiable_never_late(played: Lab, tmp_path: Path) -> None:
    played.write("notes.md", "x\n")
    played.commit()
    played.git("clone", "-q", "--depth", "1", f"file://{played.folder}", str(tmp_path / "clone"))
    report = played.check(tmp_path / "clone")
    assert words(report) == {"s-1": "unverifiable", "s-2": "unverifiable"}
    assert "shallow" in whys(report)
    assert verdicts(report) == {"s-1/1": "held", "s-2/1": "held"}


def test_late_runs_in_a_shallow_clone_are_not_called_registered(lab: Lab, tmp_path: Path) -> None:
    lab.run_all()
    lab.register()
    lab.git("clone", "-q", "--depth", "1", f"file://{lab.folder}", str(tmp_path / "clone"))
    assert set(words(lab.check(tmp_path / "clone")).values()) == {"unverifiable"}


def test_an_archive_is_unverifiable(played: Lab, tmp_path: Path) -> None:
    shutil.copytree(played.folder, tmp_path / "archive", ignore=shutil.ignore_patterns(".git"))
    report = played.check(tmp_path / "archive")
    assert words(report) == {"s-1": "unverifiable", "s-2": "unverifiable"}
    assert "no git history" in whys(report)


def test_runs_made_from_an_archive_are_unverifiable(played: Lab, tmp_path: Path) -> None:
    inside = Lab(tmp_path / "archive", tmp_path / "other runs")
    shutil.copytree(played.folder, inside.folder, ignore=shutil.ignore_patterns(".git"))
    inside.run_all()
    report = inside.check(played.folder)
    assert words(report) == {"s-1": "unverifiable", "s-2": "unverifiable"}
    assert "made outside git" in whys(report)


def test_edited_in_an_archive_is_still_changed(played: Lab, tmp_path: Path) -> None:
    shutil.copytree(played.folder, tmp_path / "archive", ignore=shutil.ignore_patterns(".git"))
    (tmp_path / "archive" / FILE).write_text(EDITED, encoding="utf-8")
    assert words(played.check(tmp_path / "archive"))["s-2/None"] == "changed"


def test_a_study_below_the_top_of_its_repository(tmp_path: Path) -> None:
    top = make_lab(tmp_path)
    top.folder.joinpath("inner").mkdir()
    for part in ("conf", "experiments"):
        shutil.move(top.folder / part, top.folder / "inner" / part)
    top.commit()
    inner = Lab(top.folder / "inner", tmp_path / "inner runs")
    late = inner.run(CELLS[0], solved=False)
    inner.register()
    inner.run_all(CELLS[1:])
    assert words(inner.check()) == {"s-1": "registered", "s-2": "late"}
    shutil.rmtree(late)
    inner.run(CELLS[0], solved=False)
    assert inner.check().holds


def test_predictions_of_another_experiment(played: Lab) -> None:
    for folder in played.made:
        manifest = read_json(folder / "manifest.json")
        edit_json(folder / "manifest.json", registration=manifest["registration"] | {"experiment": "other"})
    report = played.check()
    assert words(report) == {"s-1": "unregistered", "s-2": "unregistered"}
    assert "under the registration of 'other'" in whys(report)


def test_files_of_another_experiment_in_this_ones_place(played: Lab) -> None:
    shutil.copytree(played.folder / "experiments" / "shot", played.folder / "experiments" / "goal")
    with pytest.raises(ValueError, match="says 'shot', but its folder is 'goal'"):
        Lab(played.folder, played.runs, "goal").check()
    renamed = PREDICTIONS.replace("experiment: shot", "experiment: goal")
    played.write("experiments/goal/predictions.yaml", renamed)
    with pytest.raises(RegistrationError, match="registration of 'shot'"):
        Lab(played.folder, played.runs, "goal").check()


def test_a_run_copied_from_another_grid_is_left_out(played: Lab) -> None:
    shutil.rmtree(played.made[-1])
    other = Cell({**CELLS[-1].settings, "server.n_ctx": 32768})
    played.run(other, solved=True)
    report = played.check()
    assert verdicts(report)["s-1/1"] == "undetermined"
    assert "no cell of the grid has its settings (server.n_ctx=32768)" in whys(report)
    assert "agent=clearing seed=2: no finished run" in whys(report)
    assert not report.holds


def test_a_copied_run_made_to_look_as_if_it_belonged(played: Lab) -> None:
    shutil.rmtree(played.made[-1])
    folder = played.run(Cell({**CELLS[-1].settings, "server.n_ctx": 32768}), solved=True)
    manifest = read_json(folder / "manifest.json")
    manifest["settings"]["server"]["n_ctx"] = 4096
    write_json(folder / "manifest.json", manifest)
    assert "its manifest was edited" in whys(played.check())
    manifest["identity"]["settings"]["server"]["n_ctx"] = 4096
    write_json(folder / "manifest.json", manifest)
    assert "the run id does not fit the identity" in whys(played.check())
    manifest["run_id"] = run_id(manifest["identity"])
    write_json(folder / "manifest.json", manifest)
    assert "its folder is named otherwise" in whys(played.check())
    renamed = folder.rename(folder.with_name(manifest["run_id"]))
    assert "its events say n_ctx 32768" in whys(played.check())
    assert renamed.exists()


def test_a_run_of_another_experiment_in_the_folder(played: Lab) -> None:
    edit_json(played.made[0] / "manifest.json", experiment="other")
    report = played.check()
    assert "it is a run of the experiment 'other'" in whys(report)
    assert "agent=plain seed=1: no finished run" in report.problems
    assert not report.holds


def test_an_edited_result_is_named_and_the_derived_one_judged(played: Lab) -> None:
    edit_json(played.made[-1] / "result.json", solved=False, hidden_passed=0)
    report = played.check()
    assert verdicts(report)["s-1/1"] == "held"
    name = played.made[-1].name
    assert f"{name}: result.json was edited: solved says False, events and grading give True" in report.problems
    assert f"{name}: result.json was edited: hidden_passed says 0, events and grading give 1" in report.problems
    assert not report.holds


def test_a_result_with_a_removed_or_added_key_is_named(played: Lab) -> None:
    result = read_json(played.made[0] / "result.json")
    del result["solved"]
    write_json(played.made[0] / "result.json", result | {"extra": 1})
    assert "solved says None" in whys(played.check())
    assert "extra says 1" in whys(played.check())


def test_runs_left_out_are_missing_cells(played: Lab) -> None:
    shutil.rmtree(played.made[0])
    report = played.check()
    assert verdicts(report) == {"s-1/1": "held", "s-2/1": "held"}
    assert "agent=plain seed=1: no finished run" in report.problems
    shutil.rmtree(played.made[-1])
    report = played.check()
    assert verdicts(report)["s-1/1"] == "undetermined"
    assert next(line for line in report.lines if line.judged.prediction.id == "s-1").judged.missing == (
        "agent=clearing seed=2",
    )
    assert not report.holds


def test_all_runs_gone(played: Lab) -> None:
    shutil.rmtree(played.runs)
    assert set(verdicts(played.check()).values()) == {"undetermined"}


def test_a_half_run_counts_as_missing(played: Lab) -> None:
    (played.made[-1] / "result.json").unlink()
    assert verdicts(played.check())["s-1/1"] == "undetermined"


def test_a_damaged_run_is_named_and_missing(played: Lab) -> None:
    (played.made[-1] / "grading.json").write_text("{", encoding="utf-8")
    report = played.check()
    assert f"{played.made[-1].name}: left out: " in whys(report)
    assert verdicts(report)["s-1/1"] == "undetermined"


def test_a_run_made_twice_is_named(played: Lab) -> None:
    shutil.copytree(played.made[0], played.runs / "shot" / "again" / played.made[0].name)
    assert "agent=plain seed=1: run more than once" in whys(played.check())


def test_a_dirty_tree_is_named(lab: Lab) -> None:
    lab.register()
    lab.write("scratch.py", "x = 1\n")
    lab.run_all()
    report = lab.check()
    assert words(report) == {"s-1": "registered", "s-2": "registered"}
    assert "made from a dirty tree: scratch.py" in whys(report)
    assert not report.holds


def test_a_changed_harness_is_named(played: Lab) -> None:
    edit_json(played.made[0] / "manifest.json", harness={"version": "1", "commit": "abc", "clean": False})
    assert "uncommitted changes in the harness (commit abc)" in whys(played.check())


@pytest.mark.parametrize("file", [FILE, "experiments/shot/plan.md", "conf/experiment/shot.yaml"])
def test_uncommitted_changes_of_what_is_registered(lab: Lab, file: str) -> None:
    lab.register()
    lab.write(file, EDITED)
    lab.run_all()
    lab.git("checkout", "-q", "--", file)
    report = lab.check()
    assert words(report) == {"s-1": "changed", "s-2": "changed"}
    assert f"uncommitted changes in {file}" in whys(report)


def test_committed_changes_of_what_is_registered(lab: Lab) -> None:
    """The change is committed, the runs made, the change taken back: the runs' commit tells."""
    lab.register()
    lab.write(FILE, EDITED)
    lab.commit()
    lab.run_all()
    lab.write(FILE, PREDICTIONS)
    lab.commit()
    report = lab.check()
    assert words(report) == {"s-1": "changed", "s-2": "changed"}
    assert "is not what was registered" in whys(report)


def test_another_task(played: Lab) -> None:
    edit_json(played.made[0] / "manifest.json", task={"name": "cart", "digest": "d2"})
    report = played.check()
    assert words(report) == {"s-1": "registered", "s-2": "changed"}
    assert "task cart is not the registered one" in whys(report)


def test_an_amendment_shows_both_verdicts(played: Lab) -> None:
    played.write(FILE, EDITED.replace("At most", "at most").replace("at most one", "none"))
    played.commit()
    played.register(amend="one was too easy")
    report = played.check()
    assert words(report) == {"s-1/1": "registered", "s-2/1": "registered", "s-2/2": "late"}
    amended = report.lines[-1]
    assert amended.amended == "one was too easy"
    assert amended.judged.prediction.wording == "Without it none is."
    shutil.rmtree(played.runs)
    played.run_all()
    assert words(played.check()) == {"s-1/1": "registered", "s-2/1": "registered", "s-2/2": "registered"}
    assert played.check().problems == ()


def test_cells_dropped_by_an_amendment_still_count_for_the_first_wording(lab: Lab) -> None:
    lab.register()
    lab.run_all(CELLS[:3])
    lab.run(CELLS[3], solved=False)
    lab.write("conf/experiment/shot.yaml", "seeds: [1]\n")
    lab.commit()
    lab.register(cells=(CELLS[0], CELLS[2]), amend="seed 2 was unlucky")
    report = lab.check()
    # With one run of each arm left, "at most one" can't lose any more.
    only = "held_in_wording_only"
    assert verdicts(report) == {"s-1/1": "failed", "s-1/2": "held", "s-2/1": "held", "s-2/2": only}
    assert words(report) == {"s-1/1": "registered", "s-1/2": "late", "s-2/1": "registered", "s-2/2": "late"}
    shutil.rmtree(lab.made[-1])
    report = lab.check()
    assert verdicts(report)["s-1/1"] == "undetermined"
    assert "agent=clearing seed=2: no finished run" in report.problems


def test_an_amendment_of_the_plan_alone_shows_each_prediction_once(played: Lab) -> None:
    played.write("experiments/shot/plan.md", "A clearer plan.\n")
    played.commit()
    played.register(amend="typos")
    report = played.check()
    assert words(report) == {"s-1": "registered", "s-2": "registered"}
    assert report.holds
    shutil.rmtree(played.made[0])
    played.run(CELLS[0], solved=False)
    assert played.check().holds


def test_an_amendment_that_was_not_committed_when_the_run_began(lab: Lab) -> None:
    lab.register()
    lab.write(FILE, EDITED)
    lab.commit()
    lab.register(amend="one was too easy", commit=False)
    lab.run_all()
    lab.commit()
    assert words(lab.check())["s-2/2"] == "late"


def test_what_can_not_be_caught_is_said(played: Lab) -> None:
    limits = " ".join(played.check().limits)
    for word in ("dates", "private history", "Events and grading", "thrown away"):
        assert word in limits


def test_the_report_is_json(played: Lab) -> None:
    document = json.loads(json.dumps(played.check().as_json()))
    assert document["predictions"][0]["values"][0]["rows"][0]["solved"] is True
    assert document["scores"]["n"] == 1
