"""Replies against the server's own log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from recorded_runs import clearing_run, quick_grid, solved_run

from analysis.tables import cross_check, line, requests, words

RATE = "tokens (    2.50 ms per token,   400.00 tokens per second)"
PROBE = [
    "slot launch_slot_: id  0 | task 900 | processing task, is_child = 0",
    "slot update_slots: id  0 | task 900 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 7",
    "slot update_slots: id  0 | task 900 | n_tokens = 0, memory_seq_rm [0, end)",
    f"slot print_timing: id  0 | task 900 | prompt eval time =      20.00 ms /     7 {RATE}",
    f"slot print_timing: id  0 | task 900 |        eval time =      10.00 ms /     1 {RATE}",
    "slot print_timing: id  0 | task 900 |       total time =      30.00 ms /     8 tokens",
    "slot      release: id  0 | task 900 | stop processing: n_tokens = 7, truncated = 0",
]


def test_replies_and_log_agree(tmp_path: Path) -> None:
    quick_grid(tmp_path)
    check = cross_check(tmp_path)
    n = len(requests(tmp_path))
    assert line(check) == f"replies {n}, log {n}, matched {n}, mismatched 0"
    assert check["details"] == []
    assert check["problems"] == []


@pytest.mark.parametrize(
    ("pattern", "field"),
    [
        (r"/\s+(\d+) tokens \(    2\.50", "processed_tokens"),
        (r"/\s+(\d+) tokens \(   11\.25", "generated_tokens"),
        (r"n_tokens = (\d+), memory_seq_rm", "cached_tokens"),
        (r"task\.n_tokens = (\d+)", "prompt_tokens"),
        (r"stop processing: n_tokens = (\d+)", "release_n_tokens"),
        (r"truncated = (0)", "truncated"),
        (r"prompt eval time = +(\d+)\.", "prompt_ms"),
        (r"       eval time = +(\d+)\.", "eval_ms"),
    ],
)
def test_one_changed_number_is_one_mismatch(tmp_path: Path, pattern: str, field: str) -> None:
    folder = clearing_run(tmp_path)
    text = folder.server_log.read_text()
    place = list(re.finditer(pattern, text))[2]
    changed = str(int(place.group(1)) + 1)
    folder.server_log.write_text(text[: place.start(1)] + changed + text[place.end(1) :])
    check = cross_check(tmp_path)
    n = len(requests(tmp_path))
    assert (check["replies"], check["log"], check["matched"], check["mismatched"]) == (n, n, n - 1, 1)
    (detail,) = check["details"]
    assert field in detail["differences"]
    asked = requests(tmp_path)
    assert asked["log_matches"].fillna(True).sum() == n - 1


@pytest.mark.parametrize(
    ("line_of", "missing"),
    [
        ("prompt eval time", ["processed_tokens", "prompt_ms"]),
        ("       eval time", ["generated_tokens", "eval_ms"]),
        ("memory_seq_rm", ["cached_tokens"]),
        ("task.n_tokens", ["prompt_tokens"]),
        ("stop processing", ["status"]),
    ],
)
def test_a_missing_line_is_said(tmp_path: Path, line_of: str, missing: list[str]) -> None:
    folder = solved_run(tmp_path)
    lines = folder.server_log.read_text().splitlines(keepends=True)
    chosen = [i for i, text in enumerate(lines) if line_of in text][1]
    folder.server_log.write_text("".join(lines[:chosen] + lines[chosen + 1 :]))
    check = cross_check(tmp_path)
    assert (check["matched"], check["mismatched"], check["incomplete"]) == (4, 0, 1)
    (detail,) = check["details"]
    assert detail["missing"] == missing
    assert words(detail).endswith(f"the log does not tell {', '.join(missing)}")
    assert line(check).endswith("mismatched 0, told in part 1")


def test_a_doubled_line_is_said(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    text = folder.server_log.read_text()
    folder.server_log.write_text(re.sub(r"(?m)^(.*stop processing.*\n)", r"\1\1", text, count=1))
    check = cross_check(tmp_path)
    assert line(check) == "replies 4, log 4, matched 4, mismatched 0"
    assert [p.partition(": ")[2] for p in check["problems"]] == [
        "1 timing or release line printed a second time, the first one counts"
    ]


def test_a_number_that_is_none_ends_no_table(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    text = folder.server_log.read_text()
    folder.server_log.write_text(re.sub(r"/ +\d+ tokens", f"/ {'9' * 30} tokens", text, count=1))
    assert requests(tmp_path)["log_processed_tokens"].isna().sum() == 1


def test_a_lost_row_is_named(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    lines = folder.server_log.read_text().splitlines(keepends=True)
    folder.server_log.write_text("".join(x for x in lines if "| task 19 |" not in x))
    check = cross_check(tmp_path)
    assert (check["replies"], check["log"], check["matched"], check["mismatched"]) == (4, 3, 3, 0)
    assert check["details"][0]["problem"] == "no row of the log fits this reply"


def test_a_probe_before_the_run_does_not_count_and_one_within_does(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    text = folder.server_log.read_text()
    folder.server_log.write_text("\n".join(PROBE) + "\n" + text)
    assert line(cross_check(tmp_path)) == "replies 4, log 4, matched 4, mismatched 0"
    folder.server_log.write_text(text + "\n".join(PROBE) + "\n")
    check = cross_check(tmp_path)
    assert (check["replies"], check["log"], check["matched"]) == (4, 5, 4)
    assert check["details"] == [
        {"run_id": folder.result()["run_id"], "task": 900, "problem": "no reply fits this row of the log"}
    ]


def test_a_run_without_log_is_counted_apart(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    folder.server_log.unlink()
    check = cross_check(tmp_path)
    assert (check["replies"], check["log"], check["without_log"]) == (0, 0, 1)


def test_a_log_of_another_program_is_a_problem(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    folder.server_log.write_text("GET / 200\n" * 5)
    check = cross_check(tmp_path)
    assert check["matched"] == 0
    assert len(check["problems"]) == 1
    assert str(folder.server_log) in check["problems"][0]
