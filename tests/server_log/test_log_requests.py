"""What lines mean for a request: cancels, exceptions, shifts, drafts, lost timings."""

from __future__ import annotations

import pytest
from log_renderer import FORMATS, Spec

from analysis.server_log import parse, to_json

BY_NAME = {form.name: form for form in FORMATS}
SPEC = Spec(0, 60, 4, 20, 5, 1.0, 2.0)


def slot(task: int, text: str, level: str = "I") -> str:
    return f"1.00.322.344 {level} slot   operator(): id  0 | task {task} | {text}"


def srv(text: str) -> str:
    return f"1.00.322.344 W srv          stop: {text}"


def rows(lines: list[str]) -> list[dict]:
    return to_json(parse(lines))["requests"]


def lines_of(name: str, **more) -> list[str]:
    return BY_NAME[name].write(Spec(**({field: getattr(SPEC, field) for field in SPEC.__dataclass_fields__} | more)))


def exception(code: int, text: str) -> str:
    return (
        f'1.00.322.344 W srv    operator(): got exception: {{"error":{{"code":{code},"message":"{text}","type":"x"}}}}'
    )


def test_cancelled_in_the_queue_never_had_a_slot():
    (row,) = rows([srv("cancel task, id_task = 9")])
    assert (row["slot"], row["status"], row["truncated"], row["processed_tokens"]) == (None, "cancelled", None, None)


def test_cancelled_and_not_yet_released():
    (row,) = rows([*lines_of("E")[:2], srv("cancel task, id_task = 60")])
    assert row["status"] == "cancelled"


def test_cancel_after_the_end_is_clean_up():
    (row,) = rows([*lines_of("E"), srv("cancel task, id_task = 60")])
    assert row["status"] == "ok"


def test_cancel_of_a_task_long_gone_makes_no_row():
    lines = [line for task in range(60, 160) for line in lines_of("E", task=task)]
    assert len(rows([*lines, srv("cancel task, id_task = 60")])) == 100


def test_refused_grammar_never_had_a_slot():
    lines = [
        "srv    send_error: task id = 9, error: Failed to initialize samplers: bad grammar",
        "srv  process_sing: failed to launch slot with task, id_task = 9",
        "srv          stop: cancel task, id_task = 9",
    ]
    (row,) = rows(lines)
    assert (row["slot"], row["status"], row["processed_tokens"], row["generated_tokens"]) == (None, "rejected", 0, 0)
    assert row["error"] == "Failed to initialize samplers: bad grammar"


def test_error_while_running_is_a_failure():
    lines = [*lines_of("E")[:2], "0 E srv send_error: task id = 60, error: Context size has been exceeded."]
    (row,) = rows([*lines, slot(60, "stop processing: n_tokens = 90, truncated = 0")])
    assert (row["status"], row["processed_tokens"], row["error"]) == ("failed", None, "Context size has been exceeded.")


def test_launch_order_when_first_named_by_another_line():
    early = slot(61, "created context checkpoint 1 of 8").replace("id  0", "id  1")
    (first, second) = rows([early, *lines_of("E"), *lines_of("E", task=61, slot=1)])
    assert (first["task"], second["task"]) == (60, 61)


class TestExceptions:
    def test_just_after_a_cancel_is_the_same_request(self):
        (row,) = rows([*lines_of("E"), srv("cancel task, id_task = 60"), exception(500, "no format")])
        assert (row["status"], row["error"], row["generated_tokens"]) == ("failed", "no format", 5)

    def test_before_there_was_a_task(self):
        (row,) = rows([*lines_of("E"), srv("cancel task, id_task = 60"), exception(400, "bad schema")])
        assert row["status"] == "ok"

    def test_of_a_history_that_cannot_be_read(self):
        text = "Failed to parse tool call arguments as JSON: x"
        (row,) = rows([*lines_of("E"), srv("cancel task, id_task = 60"), exception(500, text)])
        assert row["status"] == "ok"

    def test_whose_text_looks_like_an_http_line(self):
        text = "bad request: POST /x 127.0.0.1 200"
        (row,) = rows([*lines_of("E"), srv("cancel task, id_task = 60"), exception(500, text)])
        assert (row["status"], row["error"]) == ("failed", text)

    def test_without_a_cancel(self):
        (row,) = rows([*lines_of("E"), exception(500, "elsewhere")])
        assert row["status"] == "ok"

    def test_after_the_answer_of_the_cancelled(self):
        answered = "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200"
        (row,) = rows([*lines_of("E"), srv("cancel task, id_task = 60"), answered, exception(500, "elsewhere")])
        assert row["status"] == "ok"

    def test_the_error_sent_first_stays(self):
        (row,) = rows([*lines_of("E", outcome="failed"), exception(500, "later")])
        assert row["error"] == "Context size has been exceeded."


class TestReuse:
    def cached(self, *lines: str) -> int | None:
        return rows([*lines_of("E")[:2], *lines, *lines_of("E")[2:]])[0]["cached_tokens"]

    def test_last_of_restore_and_correction(self):
        restored = slot(
            60, "restored context checkpoint (pos_min = 1, pos_max = 2, n_tokens = 3, n_past = 21, size = 1 MiB)"
        )
        assert self.cached(restored) == 21
        assert self.cached(restored, slot(60, "n_past was set to 19", "W")) == 19
        assert self.cached(restored, slot(60, "forcing full prompt re-processing due to lack of cache data")) == 0

    def test_restore_without_a_count_says_nothing(self):
        assert self.cached(slot(60, "restored context checkpoint (pos_min = 1, pos_max = 2, size = 1 MiB)")) is None

    def test_reuse_line_beats_the_hints(self):
        line = slot(60, "cached n_tokens = 3, memory_seq_rm [7, end)")
        assert self.cached(line, slot(60, "n_past was set to 19")) == 3

    def test_matching_prefix_is_no_reuse(self):
        assert self.cached(slot(60, "n_past = 21, slot.prompt.tokens.size() = 400, seq_id = 2")) is None


@pytest.mark.parametrize(
    "extra",
    [
        "slot context shift, n_keep = 0, n_left = 255, n_discard = 127",
        "draft acceptance = 0.50000 (    2 accepted /     4 generated), mean len =  1.50",
    ],
)
def test_no_derivation_where_the_cache_count_lies(extra):
    lines = lines_of("E")
    (row,) = rows([*lines[:-1], slot(60, extra), lines[-1]])
    assert "prompt_tokens_derived" not in row
    assert "cached_tokens_derived" not in row
    assert row["release_n_tokens"] == SPEC.held


def test_draft_line_without_its_own_tag():
    lines = lines_of("C b8000")
    end = next(index for index, line in enumerate(lines) if "total time" in line) + 1
    draft = "draft acceptance rate = 0.57576 (   19 accepted /    33 generated)"
    (row,) = rows([*lines[:end], draft, *lines[end:]])
    assert (row["draft_n"], row["draft_accepted"]) == (33, 19)


def test_lost_timing_lines_leave_what_follows():
    lines = [line for line in lines_of("C b6000") if "time =" not in line]
    (row,) = rows(lines)
    assert (row["processed_tokens"], row["generated_tokens"]) == (None, None)
    assert (row["processed_tokens_derived"], row["generated_tokens_derived"]) == (20, 5)


@pytest.mark.parametrize("name", ["B text", "B json", "B ollama"])
def test_structured_release_before_its_timings(name):
    """b3678 and later."""
    lines = lines_of(name)
    release = next(line for line in lines if "slot released" in line)
    first = next(index for index, line in enumerate(lines) if "eval time" in line)
    moved = [line for line in lines if line != release]
    assert rows([*moved[:first], release, *moved[first:]]) == rows(lines)


@pytest.mark.parametrize("name", ["B text", "B json"])
def test_structured_task_error(name):
    text = "Input prompt is too big compared to KV size"
    line = f' ERR [send_error] task error | tid="1" timestamp=1 id_multi=-1 id_task=60 error="{text}"'
    if name == "B json":
        line = f'{{"tid":"1","level":"ERR","msg":"task error","id_multi":-1,"id_task":60,"error":"{text}"}}'
    lines = [text for text in lines_of(name) if "eval time" not in text]
    (row,) = rows([*lines, line])
    assert (row["status"], row["error"], row["processed_tokens"]) == ("failed", text, None)


def test_process_of_era_a_ends_with_its_decode_error():
    lines = [*lines_of("A")[:3], "update_slots : failed to decode the batch, n_batch = 1, ret = 1"]
    (row,) = rows(lines)
    assert (row["status"], row["error"], row["prompt_tokens_derived"]) == ("failed", "process ended", 24)


def test_embedding_has_no_timings_and_generates_nothing():
    lines = [line for line in lines_of("C b8000") if "time =" not in line and "print_timing" not in line]
    (row,) = rows(lines)
    assert row["processed_tokens_derived"] == 20
    assert "generated_tokens_derived" not in row


def test_timings_of_other_programs_are_not_a_requests():
    perf = "llama_perf_context_print: prompt eval time =      20.00 ms /    20 tokens (    1.00 ms per token)"
    old = "llama_print_timings:        eval time =      50.00 ms /     5 runs   (   10.00 ms per token)"
    plain = rows(lines_of("C b8000"))
    assert rows([perf, old, *lines_of("C b8000"), perf, old]) == plain
