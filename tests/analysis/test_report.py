"""The report: one file, offline, accessible, small enough at 500 runs, and nothing from a run can run in it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from recorded_runs import Recorder, clearing_run, quick_grid, solved_run

from analysis.plots.window import window_use
from analysis.report import write_report
from analysis.report.facts import question
from analysis.report.notebooks import NAMES, NotebookError, execute, to_html
from analysis.report.runs_part import pack
from analysis.report.transcript import transcript
from analysis.report.verdicts import because, verdict_table
from analysis.tables import load, requests
from analysis.tables.arms import natural_order
from harness.record.events import read_events
from harness.record.folder import RecordError

VERDICTS = [
    {
        "id": "q-1",
        "wording": "A <b>cut</b> reply counts as done.",
        "verdict": "held",
        "provenance": "registered",
        "why": "3 of 3",
    },
    {
        "id": "q-2",
        "wording": "Clears cost half.",
        "verdict": "held_in_wording_only",
        "provenance": "late",
        "reason": "no clear",
    },
]


class Page(HTMLParser):
    """What a test wants to know of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "link", "input", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.tags if t == tag]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("runs")
    quick_grid(root, seeds=2)
    study = tmp_path_factory.mktemp("study")
    (study / "plan.md").write_text(
        "# Does it count?\n\n## Question\nIs a cut reply <done>?\n\nReally?\n\n## Arms\nno\n"
    )
    out = root / "report.html"
    published = Path(__file__).parents[2] / "experiments" / "published" / "data" / "runs.yaml"
    assert write_report(root, VERDICTS, out, experiment_dir=study, published=published, notebooks=()) == out
    return root, out


def test_the_page_is_whole_and_needs_nothing_from_outside(written: tuple[Path, Path]) -> None:
    text = written[1].read_text()
    page = Page(text)
    assert page.open == []
    assert not re.search(r"https?://|//[a-z]+\.[a-z]", re.sub(r'base64,[^"]+', "", text))
    for tag, attributes in page.tags:
        for name in ("src", "href", "data", "action"):
            if attributes.get(name):
                assert attributes[name].startswith(("#", "data:image/png;base64,")), (tag, attributes[name][:60])
    (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_first_screen_has_question_verdicts_and_three_numbers(written: tuple[Path, Path]) -> None:
    text = written[1].read_text()
    first = text[: text.index("<section")]
    for expected in (
        "Does it count?",
        "Is a cut reply &lt;done&gt;?",
        "Really?",
        "q-1",
        "held in wording only",
        "late",
        "8 real runs",
    ):
        assert expected in first
    assert "2 of 2 (100 %, 34 to 100 %)" in first  # Wilson's interval of 2 of 2
    assert "A &lt;b&gt;cut&lt;/b&gt; reply" in first


def test_the_page_is_accessible(written: tuple[Path, Path]) -> None:
    page = Page(written[1].read_text())
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1
    assert all(len(image["alt"] or "") > 30 for image in page.all("img"))
    assert all(head.get("scope") in ("col", "row") for head in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    levels = [int(t[1]) for t, _ in page.tags if re.fullmatch("h[1-6]", t)]
    assert all(b - a <= 1 for a, b in pairwise(levels))
    identities = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(identities) == len(set(identities))
    assert {a["href"] for a in page.all("a")} <= {f"#{i}" for i in identities}


def test_provenance_holds_the_cross_check_and_the_departures(written: tuple[Path, Path]) -> None:
    text = written[1].read_text()
    n = 2 * (4 + 4 + 7 + 2)
    assert f"replies {n}, log {n}, matched {n}, mismatched 0" in text
    assert "server.max_tokens" in text
    assert "c" * 64 in text
    assert "Nothing was left out" in text


def unpacked(text: str) -> dict[str, list[list[object]]]:
    found = re.findall(r'<script type="application/octet-stream" id="t-(\w+)">([^<]*)</script>', text)
    return {run: json.loads(zlib.decompress(base64.b64decode(data))) for run, data in found}


def test_every_run_has_its_transcript_and_a_readable_line(written: tuple[Path, Path]) -> None:
    root, out = written
    text = out.read_text()
    transcripts = unpacked(text)
    records = load(root)
    assert set(transcripts) == {r.result["run_id"] for r in records.runs}
    for record in records.runs:
        assert transcripts[record.result["run_id"]] == [b.as_list() for b in transcript(record.events)]
    assert text.count('<details id="run-') == len(records.runs)


def test_transcripts_mark_cuts_clears_and_guards(tmp_path: Path) -> None:
    blocks = transcript(read_events(clearing_run(tmp_path).events))
    marks = [m for b in blocks for m in b.marks]
    assert "cut by the window, dropped" in marks
    assert sum(m.startswith("cleared or changed at step") for m in marks) == 4
    cleared = [b for b in blocks if any(m.startswith("cleared") for m in b.marks)]
    assert all(b.kind == "tool" for b in cleared)
    titles = [b.title for b in blocks]
    assert any("the test guard put tests back" in t for t in titles)
    assert titles[-1].endswith("stop: step_limit")


def test_a_clear_after_a_reply_stands_behind_that_reply(tmp_path: Path) -> None:
    events = list(read_events(clearing_run(tmp_path).events))
    clear = next(i for i, e in enumerate(events) if e["event"] == "context")
    late = events[clear] | {"when": "after_reply", "step": 3}
    reply = next(i for i, e in enumerate(events) if e["event"] == "response" and e["step"] == 3)
    moved = [*events[:clear], *events[clear + 1 : reply + 1], late, *events[reply + 1 :]]
    titles = [b.title for b in transcript(moved)]
    at = titles.index("step 3: clear: 2 messages changed (published)")
    assert titles[at - 1] == "step 3: model"
    # A run that was broken off between the two still shows the clear.
    assert transcript(moved[: reply + 1])[-1].title == "step 3: clear: 2 messages changed (published)"


def test_what_a_model_wrote_can_not_become_part_of_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    run = Recorder(tmp_path, task=evil, agent="part2")
    run.reply(evil, ("bash", {"command": evil}), evil)
    run.finish()
    out = write_report(
        tmp_path,
        [{"id": evil, "wording": evil, "verdict": evil, "provenance": evil}],
        tmp_path / "r.html",
        notebooks=(),
    )
    page = Page(out.read_text())
    assert page.open == []
    assert not any("onerror" in a for _, a in page.tags)
    kinds = [a.get("type") for a in page.all("script")]
    assert kinds.count(None) == 1
    assert set(kinds) == {None, "application/octet-stream"}


def test_real_and_scripted_runs_have_their_own_parts(tmp_path: Path) -> None:
    solved_run(tmp_path, kind="real")
    solved_run(tmp_path, kind="scripted")
    text = write_report(tmp_path, [], tmp_path / "r.html", notebooks=()).read_text()
    assert "Outcomes (real runs)" in text
    assert "Outcomes (scripted runs)" in text
    assert text.index("Outcomes (real runs)") < text.index("Outcomes (scripted runs)")
    assert "No predictions were written down" in text


def test_damage_and_disagreement_stand_in_the_report(tmp_path: Path) -> None:
    solved_run(tmp_path, seed=0)
    half = solved_run(tmp_path, seed=1)
    (half.path / "result.json").unlink()
    edited = solved_run(tmp_path, seed=2)
    (edited.path / "result.json").write_text(json.dumps(edited.result() | {"clears": 7}))
    text = edited.server_log.read_text()
    edited.server_log.write_text(text.replace("255 tokens (", "256 tokens (", 1))
    page = write_report(tmp_path, [], tmp_path / "r.html", notebooks=()).read_text()
    assert "not finished, not counted" in page
    assert "result.json says clears = 7, the record gives 0" in page
    assert "mismatched 1" in page
    assert "processed_tokens: log 256, reply 255" in page


def test_no_finished_run_is_one_line(tmp_path: Path) -> None:
    half = solved_run(tmp_path)
    (half.path / "result.json").unlink()
    with pytest.raises(RecordError, match="no finished run to report on; 1 unfinished"):
        write_report(tmp_path, [], tmp_path / "r.html")


def test_five_hundred_runs_stay_under_fifteen_megabytes(tmp_path: Path) -> None:
    """Transcripts of incompressible text, more than the page may hold: they are shortened until they fit, and it says so."""
    run = Recorder(tmp_path, n_ctx=65536)
    for i in range(6):
        noise = base64.b64encode(
            zlib.compress(bytes((j * j * (i + 7) + j // 3) % 251 for j in range(9000)), 0)
        ).decode()
        run.reply(noise, ("read_file", {"path": "a.py"}), noise[::-1])
    run.finish()
    records = load(tmp_path).runs * 500
    packed, longest = pack(records, budget=9_000_000)
    assert len(packed) == 500
    assert sum(map(len, packed)) <= 9_000_000
    whole, uncut = pack(records[:1])
    assert uncut is None
    assert longest is None or len(whole[0]) > len(packed[0])


def test_question_without_a_plan(tmp_path: Path) -> None:
    assert question(None) == ("", "")
    assert question(tmp_path) == ("", "")
    (tmp_path / "plan.md").write_text("# A title\n\nThe first words\nask.\n\nMore.\n")
    assert question(tmp_path) == ("A title", "The first words\nask.")


def test_all_notebooks_execute(written: tuple[Path, Path]) -> None:
    executed = execute(NAMES, written[0], VERDICTS)
    pages = {name: to_html(notebook) for name, notebook in executed.items()}
    for name, notebook in executed.items():
        assert not any(o.get("output_type") == "error" for c in notebook.cells for o in c.get("outputs", []))
        assert any(c.get("outputs") for c in notebook.cells), name
        assert "<script" not in pages[name]
        assert "%%" not in pages[name]
        assert {c.cell_type for c in notebook.cells} == {"markdown", "code"}
        assert not re.search(r"https?://", pages[name])
    assert "right after a clear 4 requests, 2 evaluated more than half" in pages["prompt_cache"]
    assert "mismatched 0" in pages["prompt_cache"]
    assert "in 2 of 8 runs a cut reply was taken as the last word; 2 of these" in pages["truncation"]
    assert "part2 2K: solved 0 of 2" in pages["hidden_tests"]
    assert "cd /repo &amp;&amp; ls" in pages["approvals"]
    assert "held in wording only: 1 of 2" in pages["predictions"]


def test_an_unknown_notebook_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="nothing: no such notebook; known: prompt_cache"):
        execute(["nothing"], tmp_path)


def test_a_clear_that_found_nothing_is_told_apart(tmp_path: Path) -> None:
    run = Recorder(tmp_path)
    run.reply("look", ("read_file", {"path": "cart.py"}), "text " * 50)
    run.clear()
    run.reply("again", ("read_file", {"path": "cart.py"}), "text " * 50)
    run.clear()
    run.reply("done")
    blocks = transcript(read_events(run.finish().events))
    clears = [(b.title, b.marks) for b in blocks if "clear" in b.title]
    assert clears == [
        ("step 1: clear that found nothing to clear (published)", ["nothing cleared"]),
        ("step 2: clear: 1 message changed (published)", ["clear"]),
    ]
    records = load(tmp_path)
    events = records.runs[0].events
    labels = [t.get_text() for t in window_use(requests(records), events).axes[0].get_legend().get_texts()]
    assert {"clear (1)", "clear that found nothing (1)"} <= set(labels)


def test_why_a_verdict_is_what_it_is() -> None:
    """The numbers of the claim, not the author's reason for expecting it; what is missing where there are none."""
    held = {
        "verdict": "held",
        "why": "sum(runs, clears) = 0 (run a: clears=0; run b: clears=0)",
        "reason": "Nothing comes near the window.",
        "values": [{"source": "sum(runs, clears)", "value": 0.0}, {"source": "share(runs, solved)", "value": 0.25}],
    }
    assert because(held) == "sum(runs, clears) = 0; share(runs, solved) = 0.25"
    missing = held | {
        "verdict": "undetermined",
        "why": "solved of run c is not known [share(runs, solved) = not known]",
    }
    assert because(missing) == "solved of run c is not known"
    page = verdict_table([held | {"id": "a", "wording": "<w>", "provenance": "registered"}])
    assert "Expected because: Nothing comes near the window." in page
    assert "run a: clears=0" in page
    assert "&lt;w&gt;" in page
    assert because({"verdict": "held", "reason": "as stated"}) == "as stated"
    three = [{"id": str(i), "verdict": v} for i, v in enumerate(("failed", "held_in_wording_only", "failed"))]
    assert "their verdicts: 2 failed, 1 held in wording only" in verdict_table(three)


def test_arms_stand_in_reading_order_everywhere(written: tuple[Path, Path]) -> None:
    text = written[1].read_text()
    lines = re.findall(r"<summary>(part\d \d+K)", text)
    assert lines == sorted(lines, key=natural_order)
    causes = text[text.index("Why prompts were evaluated") :]
    found = re.findall(r'<th scope="row">(part\d \d+K)</th>', causes[: causes.index("</table>")])
    assert found == sorted(found, key=natural_order) != []
