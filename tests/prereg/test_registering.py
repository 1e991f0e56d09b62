"""What `register` refuses, what it says of each claim, and what it writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.prereg import Cell, RegistrationError, load_registration, register, registration_facts, study_facts
from harness.prereg.language import RUN_TABLES, parse
from harness.prereg.predictions import Part, Prediction
from harness.prereg.refute import find_example

from .lab import CELLS, PREDICTIONS, TASKS, Lab, make_lab

FILE = "experiments/shot/predictions.yaml"
LOCK = "experiments/shot/registration.json"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return make_lab(tmp_path)


def refused(lab: Lab, **options: object) -> str:
    with pytest.raises(RegistrationError) as caught:
        register(lab.study, options.pop("cells", CELLS), TASKS, tries=50, **options)
    assert not (lab.folder / LOCK).exists()
    return str(caught.value)


def test_writes_digests_cells_and_text_and_says_what_to_commit(lab: Lab) -> None:
    done = lab.register(commit=False)
    assert done.is_new
    assert done.commit_command == f'git add {LOCK} && git commit -m "Register shot" -- {LOCK}'
    document = json.loads((lab.folder / LOCK).read_text(encoding="utf-8"))
    assert document["digest"] == done.version.digest
    assert set(document["versions"][0]["files"]) == {FILE, "experiments/shot/plan.md", "conf/experiment/shot.yaml"}
    assert document["versions"][0]["tasks"] == TASKS
    registration = load_registration(lab.folder / LOCK)
    assert registration is not None
    assert registration.latest.text == PREDICTIONS
    assert [dict(c.settings) for c in registration.latest.cells] == [dict(c.settings) for c in CELLS]


def test_the_digest_depends_on_everything_that_is_locked(lab: Lab) -> None:
    first = lab.register(commit=False).version.digest
    seen = {first}
    for path, text in ((FILE, PREDICTIONS.replace("<= 1", "<= 0")), ("experiments/shot/plan.md", "Other.\n"),
                       ("conf/experiment/shot.yaml", "seeds: [1]\n")):  # fmt: skip
        (lab.folder / LOCK).unlink()
        lab.write(path, text)
        lab.commit()
        seen.add(lab.register(commit=False).version.digest)
    (lab.folder / LOCK).unlink()
    seen.add(register(lab.study, CELLS[:3], TASKS, tries=50).version.digest)
    (lab.folder / LOCK).unlink()
    seen.add(register(lab.study, CELLS, {"cart": "d2"}, tries=50).version.digest)
    assert len(seen) == 6


def test_a_dirty_tree_is_refused_and_its_files_named(lab: Lab) -> None:
    lab.write(FILE, PREDICTIONS + "# more\n")
    lab.write("odd name.txt", "x")
    lab.write("runs/shot/abc/manifest.json", "{}")
    assert refused(lab) == f"these files are not committed: {FILE}, odd name.txt; commit them first, then register"


def test_outside_git_is_refused(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    shutil.rmtree(lab.folder / ".git")
    assert "not in a git repository" in refused(lab)


def test_all_problems_are_told_at_once(lab: Lab) -> None:
    lab.write(FILE, """\
experiment: shot
predictions:
- {id: a, wording: w, claim: "count(runs, solvd) > 1"}
- {id: b, wording: w, claim: 'any(runs, agent == "part9")'}
- {id: c, wording: w, cells: {n_ctx: 8192}, claim: "any(runs, solved)"}
- {id: d, wording: w, cells: {flavour: sweet}, claim: "any(runs, solved)"}
- {id: e, wording: w, cells: {agent: [plain, part9]}, claim: "any(runs, solved)", means: "any(runs, prompts)"}
""")  # fmt: skip
    (lab.folder / "experiments/shot/plan.md").unlink()
    lab.commit()
    said = refused(lab)
    for part in (
        "plan.md: missing",
        "a: column 13: runs has no column 'solvd'; did you mean 'solved'?",
        "count(runs, solvd) > 1\n            ^^^^^",
        "b: column 20: agent is never 'part9' (possible: plain, clearing)",
        "c: cells: the grid has no n_ctx = 8192; it has 4096",
        "d: cells: the run table has no column 'flavour'",
        "e: cells: the grid has no agent = 'part9'; it has plain, clearing",
        "e: column 11: what any looks at must be a flag",
    ):
        assert part in said


def test_cells_must_exist_together(lab: Lab) -> None:
    lab.write(FILE, PREDICTIONS.replace("{agent: plain}", "{agent: plain, seed: 3}"))
    lab.commit()
    mixed = (*CELLS, Cell({**CELLS[-1].settings, "seed": 3}))
    assert "s-2: cells: no cell of the grid has all of these values" in refused(lab, cells=mixed)


def test_published_facts_and_empty_grids_have_nothing_to_register(lab: Lab) -> None:
    assert "the grid has no cells" in refused(lab, cells=())
    lab.write(FILE, PREDICTIONS + "data: facts.yaml\n")
    lab.commit()
    assert "nothing to register" in refused(lab)


def test_the_same_again_is_nothing_new_and_a_change_needs_a_reason(lab: Lab) -> None:
    first = lab.register()
    again = lab.register()
    assert (again.is_new, again.version.digest) == (False, first.version.digest)
    lab.write(FILE, PREDICTIONS.replace("<= 1", "<= 0"))
    lab.commit()
    with pytest.raises(RegistrationError, match=f"{FILE} changed since; to change .* register --amend"):
        lab.register()
    with pytest.raises(RegistrationError, match="--amend"):
        lab.register(amend="  ")
    second = lab.register(amend="too easy")
    assert (second.version.number, second.version.reason) == (2, "too easy")
    registration = load_registration(lab.folder / LOCK)
    assert registration is not None
    assert [v.digest for v in registration.versions] == [first.version.digest, second.version.digest]


def test_facts_for_the_manifest(lab: Lab, tmp_path: Path) -> None:
    assert registration_facts(lab.folder, "shot") is None
    done = lab.register(commit=False)
    facts = registration_facts(lab.folder, "shot")
    assert facts == {"experiment": "shot", "digest": done.version.digest, "commit": None, "file": LOCK}
    commit = lab.commit()
    lab.write("notes.md", "x")
    assert registration_facts(lab.folder, "shot")["commit"] == commit
    assert study_facts(lab.folder) == {
        "root": str(lab.folder.resolve()), "commit": commit, "clean": False, "dirty": ["notes.md"], "shallow": False,
    }  # fmt: skip
    bare = tmp_path / "bare"
    bare.mkdir()
    assert study_facts(bare)["commit"] is None
    assert study_facts(bare)["clean"] is None


def test_environment_variables_can_not_point_git_elsewhere(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = lab.git("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    assert study_facts(lab.folder)["commit"] == commit


def claim_of(text: str, **cells: tuple[str, ...]) -> tuple[object, Prediction]:
    return parse(text, RUN_TABLES), Prediction("p", "w", (Part(text),), cells)


@pytest.mark.parametrize(
    "text",
    [
        "all(runs, prompts >= 0)",
        "all(runs, hidden_passed <= hidden_total)",
        "all(runs, solved or not solved)",
        "share(runs, solved) <= 1",
        "count(runs, solved) < 99999",
        "1 < 2",
        "all(runs[solved], hidden_passed == hidden_total)",
        "max(requests, evaluated_pct) <= 100",
    ],
)
def test_claims_that_can_not_lose_are_found_vacuous(text: str) -> None:
    claim, prediction = claim_of(text)
    assert find_example(claim, RUN_TABLES, prediction, CELLS, tries=400) is None


@pytest.mark.parametrize(
    "text",
    [
        "all(runs, prompts <= 2)",
        "count(runs, solved) >= 2",
        "share(requests[after_clear], evaluated_pct >= 50) >= 0.9",
        'ratio(runs[agent == "clearing"], runs[agent == "plain"], evaluated_tokens) < 0.5',
        'ratio(runs[agent == "clearing"], runs[agent == "plain"], evaluated_tokens, decide="interval") < 0.5',
        'difference(runs[agent == "clearing"], runs[agent == "plain"], hidden_passed) > 0',
        "sum(runs, outside_path_flagged) / sum(runs, outside_path_commands) == 1",
        "median(runs, amplification) < 3 and max(runs, seconds) < 100000",
        'none(commands[verdict == "runs"], outside)',
        'all(tests[set == "hidden"], passed)',
        "all(runs[false_completion], hidden_passed >= 2)",
    ],
)
def test_for_claims_that_can_lose_a_table_is_shown_and_one_that_holds_exists(text: str) -> None:
    claim, prediction = claim_of(text)
    lost = find_example(claim, RUN_TABLES, prediction, CELLS, tries=2000)
    assert lost is not None
    assert lost.lines()
    assert find_example(claim, RUN_TABLES, prediction, CELLS, wanted=True, tries=2000) is not None
    assert find_example(claim, RUN_TABLES, prediction, None, tries=2000) is not None


def test_a_vacuous_prediction_is_registered_by_name_and_can_only_hold_in_wording(lab: Lab) -> None:
    lab.write(FILE, PREDICTIONS.replace("count(runs, solved) <= 1", "count(runs, solved) <= 99"))
    lab.commit()
    done = lab.register()
    assert done.version.vacuous == ("s-2",)
    lab.run_all()
    report = lab.check()
    assert "vacuous when registered (no table refuted them): s-2" in report.problems
    verdicts = {line.judged.prediction.id: line.judged for line in report.lines}
    assert verdicts["s-2"].verdict == "held_in_wording_only"
    assert "nothing could have refuted it (none found in 300 tables)" in verdicts["s-2"].why
