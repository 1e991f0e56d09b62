"""Broken, cut, mixed and foreign logs: survived and counted, or one clear line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_renderer import FORMATS, Spec

from analysis.server_log import LogError, parse, to_json

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.log"))
BY_NAME = {form.name: form for form in FORMATS}
NUMBERS = (
    "prompt_tokens",
    "cached_tokens",
    "processed_tokens",
    "generated_tokens",
    "prompt_ms",
    "eval_ms",
    "truncated",
)
START = {
    "C": "main: server is listening on http://127.0.0.1:8080 - starting the main loop",
    "E": "0.06.384.782 I srv  llama_server: listening on http://127.0.0.1:8080",
}


def read_or_error(path: Path) -> dict | None:
    try:
        return to_json(parse(path))
    except LogError as error:
        message = str(error)
    assert "\n" not in message
    return None


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "server.log"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_cut_anywhere_tells_no_other_number(path, tmp_path):
    """Cut at every byte of the last line and in some 300 places before: a number is the whole log's or not there."""
    data = path.read_bytes()
    whole = {(row.get("run"), row["task"]): row for row in to_json(parse(path))["requests"]}
    last = data.rstrip(b"\n").rfind(b"\n")
    for cut in sorted({*range(0, len(data), len(data) // 300), *range(last, len(data))}):
        document = read_or_error(written(tmp_path, data[:cut]))
        for row in document["requests"] if document else ():
            full = whole.get((row.get("run"), row["task"]))
            assert full is not None, (cut, row)
            assert {name: row[name] for name in NUMBERS if row[name] not in (None, full[name])} == {}, cut


@settings(max_examples=200, deadline=None)
@given(data=st.data(), path=st.sampled_from(SAMPLES))
def test_rubbish_anywhere_is_survived(data, path, tmp_path_factory):
    log = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(log)))
        log[place : place + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=30))
    read_or_error(written(tmp_path_factory.mktemp("rubbish"), bytes(log)))


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_a_log_or_an_error(data, tmp_path_factory):
    read_or_error(written(tmp_path_factory.mktemp("bytes"), data))


def log_of(name: str, *tasks: int, **more) -> list[str]:
    return [line for task in tasks for line in BY_NAME[name].write(Spec(0, task, 4, 20, 5, 1.0, 2.0, **more))]


@pytest.mark.parametrize(("name", "era"), [("C b8000", "C"), ("E", "E")])
def test_restart(name, era):
    second = log_of(name, 60, 67)
    lines = [START[era], *second, *log_of(name, 75)[:2], START[era], START[era], *second]
    document = to_json(parse(lines))
    assert [(row["run"], row["task"]) for row in document["requests"]] == [(0, 60), (0, 67), (0, 75), (1, 60), (1, 67)]
    assert [row["status"] for row in document["requests"]] == ["ok", "ok", "failed", "ok", "ok"]
    assert document["requests"][2]["error"] == "process ended"
    assert document["warnings"] == ["1 restart of the server", "1 request lost with its process"]


def test_start_lines_before_the_first_task_are_no_restart():
    document = to_json(parse([START["E"], START["E"], *log_of("E", 60)]))
    assert "run" not in document["requests"][0]
    assert document["warnings"] == []


@pytest.mark.parametrize("name", ["C b8000", "E"])
def test_restart_without_a_start_line(name):
    """Two logs of the same server put one after the other, above the level that prints start lines."""
    document = to_json(parse(log_of(name, 600, 607) * 2))
    assert [row["run"] for row in document["requests"]] == [0, 0, 1, 1]
    assert [row["status"] for row in document["requests"]] == ["ok"] * 4
    assert len(document["warnings"]) == 1


def test_clock_going_back_is_a_restart():
    document = to_json(parse([*log_of("E", 600), *log_of("E", 60)]))
    assert [(row["run"], row["task"]) for row in document["requests"]] == [(0, 600), (1, 60)]


def test_restart_of_a_router_counts_for_its_children():
    def on(port: int, lines: list[str]) -> list[str]:
        return [f"[{port}] {line}" for line in lines]

    first, other = on(40001, log_of("E", 60)), on(40002, log_of("E", 60)[:2])
    lines = [START["E"], on(40001, [START["E"]])[0], *first, on(40002, [START["E"]])[0], *other, START["E"]]
    lines += [on(40003, [START["E"]])[0], *on(40003, log_of("E", 60)), *on(40001, log_of("E", 60))]
    document = to_json(parse(lines))
    keys = [(row["run"], row["instance"], row["status"]) for row in document["requests"]]
    assert keys == [(0, "40001", "ok"), (0, "40002", "failed"), (1, "40003", "ok"), (1, "40001", "ok")]
    assert document["warnings"] == ["1 restart of the server", "1 request lost with its process"]


def test_restart_of_one_child_leaves_the_others_alone():
    one = [f"[40001] {line}" for line in (*log_of("E", 60)[:2], START["E"], *log_of("E", 60))]
    two = [f"[40002] {line}" for line in log_of("E", 60)]
    document = to_json(parse([*two[:2], *one, *two[2:]]))
    keys = [(row["run"], row["instance"], row["status"]) for row in document["requests"]]
    assert keys == [(0, "40002", "ok"), (0, "40001", "failed"), (1, "40001", "ok")]


@pytest.mark.parametrize("name", ["C b8000", "E"])
def test_two_containers_keep_their_tasks_apart(name):
    lines = []
    for a, b in zip(log_of(name, 60), log_of(name, 60, truncated=True), strict=True):
        lines += [f"7b-small  | {a}", f"27b_big_1  | {b}"]
    document = to_json(parse(lines))
    assert [(row["container"], row["task"], row["truncated"], row["status"]) for row in document["requests"]] == [
        ("7b-small", 60, False, "ok"),
        ("27b_big_1", 60, True, "ok"),
    ]
    assert document["warnings"] == ["1 further container in the same log"]


def test_one_container_with_requests_needs_no_name():
    lines = [f"llama-1  | {line}" for line in log_of("E", 60)]
    (row,) = to_json(parse(["webui-1  | INFO: 172.18.0.1 GET /", *lines]))["requests"]
    assert "container" not in row


def test_log_that_begins_in_the_middle():
    lines = log_of("C b8000", 60, 75)
    first = next(index for index, line in enumerate(lines) if "memory_seq_rm" in line)
    document = to_json(parse(lines[first:]))
    row = document["requests"][0]
    assert (row["task"], row["prompt_tokens"], row["cached_tokens"], row["processed_tokens"]) == (60, None, None, 20)
    assert (row["prompt_tokens_derived"], row["cached_tokens_derived"]) == (24, 4)
    assert document["warnings"][0].startswith("1 request without a launch line")


def test_error_line_first_and_its_launch_lost():
    """The release line tells the slot; a 500 is no refusal, also where the launch line is lost."""
    lines = ["srv    send_error: task id = 60, error: Context size has been exceeded."]
    (row,) = to_json(parse(lines))["requests"]
    assert (row["slot"], row["status"], row["processed_tokens"]) == (None, "failed", None)
    lines.append("slot      release: id  3 | task 60 | stop processing: n_tokens = 2707, truncated = 0")
    document = to_json(parse(lines))
    (row,) = document["requests"]
    assert (row["slot"], row["status"], row["processed_tokens"], row["release_n_tokens"]) == (3, "failed", None, 2707)
    assert document["warnings"][0].startswith("1 request without a launch line")


def test_cancel_line_first_and_its_launch_lost():
    lines = ["srv          stop: cancel task, id_task = 60", BY_NAME["E"].write(Spec(2, 60, 4, 20, 5, 1.0, 2.0))[-1]]
    (row,) = to_json(parse(lines))["requests"]
    assert (row["slot"], row["status"], row["release_n_tokens"]) == (2, "cancelled", 28)


LONG = ("9" * 30, "9" * 6000)


@pytest.mark.parametrize("number", LONG, ids=["30 digits", "6000 digits"])
@pytest.mark.parametrize("name", ["A", "B text", "B json", "C b3761", "C b8000", "D b9230 trace", "E"])
def test_numbers_that_are_none_are_not_read(name, number):
    """Each number of each line in turn: no crash, nothing that a table could not hold, and the next request whole."""
    lines, after = log_of(name, 60), log_of(name, 75)
    for index, line in enumerate(lines):
        for place in re.finditer(r"\d+", line):
            changed = line[: place.start()] + number + line[place.end() :]
            rows = to_json(parse([*lines[:index], changed, *lines[index + 1 :], *after]))["requests"]
            values = [value for row in rows for value in row.values() if isinstance(value, int | float)]
            assert all(value < 10**18 for value in values), changed[:200]
            assert (rows[-1]["task"], rows[-1]["generated_tokens"]) == (75, 5)


def test_an_exception_nested_without_end():
    lines = [*log_of("E", 60), "1 W srv stop: cancel task, id_task = 60", "1 W srv x: got exception: " + "[" * 100_000]
    (row,) = to_json(parse(lines))["requests"]
    assert (row["status"], row["error"][:3]) == ("failed", "[[[")


def test_timing_and_release_lines_printed_twice_are_counted():
    lines = [line for line in log_of("E", 60) for _ in range(2 if "eval time" in line or "release" in line else 1)]
    document = to_json(parse(lines))
    (row,) = document["requests"]
    assert (row["processed_tokens"], row["generated_tokens"], row["status"]) == (20, 5, "ok")
    assert document["warnings"] == ["3 timing or release lines printed a second time, the first ones count"]


def test_half_last_line(tmp_path):
    text = "\n".join([*log_of("E trace", 60), *log_of("E trace", 75)[:3]])
    document = to_json(parse(written(tmp_path, text[:-1].encode())))
    assert document["requests"][1]["prompt_tokens"] is None
    assert document["warnings"] == ["1 last line cut off and left out", "1 request still open at the end of the log"]


def test_missing_line_end_after_a_whole_line(tmp_path):
    document = to_json(parse(written(tmp_path, "\n".join(log_of("C b8000", 60)[:-2]).encode())))
    assert (document["requests"][0]["status"], document["warnings"]) == ("ok", [])


def test_lost_release_line():
    lines = [line for line in log_of("E", 60) if "stop processing" not in line] + log_of("E", 75)
    document = to_json(parse(lines))
    assert [row["status"] for row in document["requests"]] == [None, "ok"]
    assert document["requests"][0]["processed_tokens"] == 20
    assert document["warnings"] == ["1 request whose end was never printed"]


def test_binary_rubbish_and_overlong_lines_are_counted(tmp_path):
    lines = [*log_of("E", 60), "\0\0\udcff\udcfe slot", "x" * (3 << 20), *log_of("E", 75)]
    data = "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n"
    document = to_json(parse(written(tmp_path, data)))
    assert [row["status"] for row in document["requests"]] == ["ok", "ok"]
    assert document["warnings"] == ["1 line with binary rubbish", "1 overlong line left out"]


def test_two_formats_in_one_log():
    document = to_json(parse([*log_of("C b8000", 60), START["E"], *log_of("E", 60)]))
    assert document["era"] == "C+E"
    assert "1 change of log format inside the log" in document["warnings"]


class TestUnusable:
    def message(self, source) -> str:
        with pytest.raises(LogError) as caught:
            parse(source)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_missing(self, tmp_path):
        assert "nowhere.log" in self.message(tmp_path / "nowhere.log")

    def test_folder(self, tmp_path):
        assert str(tmp_path) in self.message(tmp_path)

    def test_empty(self, tmp_path):
        assert "is empty" in self.message(written(tmp_path, b""))

    def test_foreign(self, tmp_path):
        text = b'127.0.0.1 - - [10/Oct/2026] "GET /slots HTTP/1.1" 200 12\nINFO: model loaded\n'
        assert "not a llama-server log" in self.message(written(tmp_path, text))

    def test_packed(self, tmp_path):
        assert "gzip" in self.message(written(tmp_path, b"\x1f\x8b\x08\0 and so on"))

    def test_text_in_place_of_a_path(self):
        assert "splitlines" in self.message("slot a\nslot b\n")

    def test_impossible_path(self):
        assert "null" in self.message("server\0.log")

    def test_no_lines(self):
        assert "is empty" in self.message([])

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything is readable for the superuser")
    def test_unreadable(self, tmp_path):
        path = written(tmp_path, b"slot")
        path.chmod(0)
        assert "server.log" in self.message(path)
