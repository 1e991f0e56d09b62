"""The double against the real server: the same requests give the same fields, codes, cache semantics and log lines.

The real server is llama.cpp's own, embedded, with SmolLM2 and the double's chat template. The double plays back the replies the
real model gave, so that everything beside the text can be compared. What may differ is listed, with the reason.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from harness import models
from harness.serving.running import RunningServer
from harness.serving.scripted import open_scripted, template
from harness.serving.scripted.parsing import parse
from harness.serving.servers import open_server
from harness.settings import ServerSettings

from .conftest import TOOLS, user

# A busy machine may take minutes for what takes seconds; nothing here depends on it.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
N_CTX = 768

# Paths whose values may differ (their types may not), and why.
DIFFERENT = {
    r".*\.created": "the double has no real date",
    r".*\.id": "random in the real server",
    r".*\.(model|name|model_alias|model_path|aliases\[\])": "the model's file against the scenario's name",
    r".*\.(system_fingerprint|build_info)": "names the build",
    r".*\.(model_ftype|ftype)": "a property of the model file",
    r".*\.media_marker": "random in the real server",
    r".*\.meta\.(n_vocab|n_ctx_train|n_embd|n_params|size|vocab_type)": "properties of the model file",
    r".*\.(prompt_ms|prompt_per_token_ms|prompt_per_second)": "the machine's speed",
    r".*\.(predicted_ms|predicted_per_token_ms|predicted_per_second)": "the machine's speed",
    r".*\.(cache_n|prompt_n|predicted_n)": "another tokenizer; compared by what they mean instead",
    r".*\.(prompt_tokens|completion_tokens|total_tokens|cached_tokens|n_prompt_tokens|n_erased|id_task)": "another tokenizer",
    r".*\.tokens\[\](\.id|\.piece)?": "another tokenizer",
    r".*\.error\.message": "names token counts, or is worded by another JSON library; compared without those",
    r".*\.has_new_line": "depends on the text",
}
# Log lines only one of the two prints, and why.
UNEQUAL_LINES = {
    r"n_gen = ": "printed every three seconds of real time",
    r"prompt processing, ": "printed after three seconds of real time",
    r"conv_id= ": "printed by the thread of the next request, before or after the end of this one",
    r"all slots are idle": "printed as often as the queue happens to be empty",
}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    try:
        model = models.resolve("smollm2-135m")
    except models.ModelError as e:
        pytest.skip(f"no model file: {e}")
    settings = ServerSettings(kind="embedded", n_ctx=N_CTX, threads=1)
    folder = tmp_path_factory.mktemp("real")
    with open_server(settings, model, folder, chat_template=template.source()) as server:
        yield server


class Both:
    """Asks the real server first, then a double that gives the same replies, and compares everything that can be."""

    def __init__(self, real: RunningServer, folder: Path) -> None:
        self.real = real
        self.folder = folder
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: list[httpx.Response] = []
        self.steps: list[dict[str, Any]] = []
        # On a busy machine the real server closes a kept connection just when it is used again.
        self.http = httpx.Client(timeout=None, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
        self.log_at = len(_log(real))
        self.http.post(real.base_url + "/slots/0?action=erase").raise_for_status()

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Asks the real server and notes what the double has to say."""
        response = self._send(self.real, method, path, body)
        self.asked.append((method, path, body))
        self.answers.append(response)
        if path.endswith("/chat/completions") and response.status_code == 200:
            self.steps.append(_step(response))
        return response

    def chat(self, messages: Any, **more: Any) -> httpx.Response:
        return self.ask("POST", "/v1/chat/completions", {"messages": messages, "temperature": 0, **more})

    def compare(self) -> list[tuple[httpx.Response, httpx.Response]]:
        """Asks the double the same and fails on the first difference; returns the pairs of answers."""
        path = self.folder / "played.yaml"
        path.write_text(yaml.safe_dump({"steps": [*self.steps, {"say": "-", "repeat": "forever"}]}), encoding="utf-8")
        settings = ServerSettings(kind="scripted", n_ctx=N_CTX, scenario=str(path))
        with open_scripted(settings, self.folder) as double:
            log_at = len(_log(double))
            self.http.post(double.base_url + "/slots/0?action=erase").raise_for_status()
            others = [self._send(double, *_unlimited(*asked)) for asked in zip(self.asked, self.answers, strict=True)]
            pairs = list(zip(self.answers, others, strict=True))
            for (method, path, _), (ours, theirs) in zip(self.asked, pairs, strict=True):
                _same_answer(f"{method} {path}", ours, theirs)
            _same_log(self.real, self.log_at, double, log_at)
        return pairs

    def _send(self, server: RunningServer, method: str, path: str, body: Any) -> httpx.Response:
        if isinstance(body, bytes):
            return self.http.request(method, server.base_url + path, content=body)
        return self.http.request(method, server.base_url + path, json=body)


@pytest.fixture
def both(real: RunningServer, tmp_path: Path) -> Iterator[Both]:
    pair = Both(real, tmp_path)
    yield pair
    pair.http.close()


def _step(response: httpx.Response) -> dict[str, Any]:
    """A scenario step that says what the real model said, with as many tokens where the reply was cut."""
    if response.headers["content-type"].startswith("text/event-stream"):
        chunks = _chunks(response)
        text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
        finish = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1]
        message: dict[str, Any] = {"content": text}
    else:
        choice = response.json()["choices"][0]
        message, finish = choice["message"], choice["finish_reason"]
    step: dict[str, Any] = {"say": message["content"], "think": message.get("reasoning_content", "")}
    calls = message.get("tool_calls", [])
    step["calls"] = [{c["function"]["name"]: c["function"]["arguments"]} for c in calls]
    if finish == "length":
        step["fill"] = "window"
    return step


def _unlimited(asked: tuple[str, str, Any], answer: httpx.Response) -> tuple[str, str, Any]:
    """A request whose reply ended by itself is asked without its limit: the double may need more tokens for the same text."""
    method, path, body = asked
    if isinstance(body, dict) and "max_tokens" in body and '"finish_reason":"length"' not in answer.text:
        body = {k: v for k, v in body.items() if k != "max_tokens"}
    return method, path, body


def _same_answer(where: str, real: httpx.Response, double: httpx.Response) -> None:
    assert double.status_code == real.status_code, where
    headers = [{k: v for k, v in r.headers.items() if k not in ("content-length", "date")} for r in (real, double)]
    assert headers[1] == headers[0], where
    if real.headers["content-type"].startswith("text/event-stream"):
        assert _collapsed(_chunks(double)) == _collapsed(_chunks(real)), where
        assert double.text.endswith("data: [DONE]\n\n") == real.text.rstrip("\n").endswith("data: [DONE]")
    elif real.headers["content-type"].startswith("application/json"):
        _same(where, real.json(), double.json())


def _same(where: str, real: Any, double: Any) -> None:
    assert type(double) is type(real), f"{where}: {real!r} against {double!r}"
    if isinstance(real, dict):
        assert list(double) == list(real), where
        for key in real:
            _same(f"{where}.{key}", real[key], double[key])
    elif isinstance(real, list):
        if not any(re.fullmatch(p, f"{where}[]") for p in DIFFERENT):
            assert len(double) == len(real), where
        for ours, theirs in zip(real, double, strict=False):
            _same(f"{where}[]", ours, theirs)
    elif where.endswith(".error.message"):
        assert _words(double) == _words(real), where
    elif where.endswith(".chat_template"):
        assert double.strip() == real.strip()
    elif where.endswith((".content", ".reasoning_content", ".arguments")) and real != double:
        assert double.startswith(real) or real.startswith(double), f"{where}: {real!r} against {double!r}"
    elif not any(re.fullmatch(p, where) for p in DIFFERENT):
        assert double == real, f"{where}: {real!r} against {double!r}"


def _words(message: str) -> str:
    return re.sub(r"\d+", "#", re.sub(r"(parse error at line) .*", r"\1", message))


def _chunks(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n") if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def _collapsed(chunks: list[dict[str, Any]]) -> list[str]:
    """The shapes of chunks, repetitions left out."""
    shapes: list[str] = []
    for chunk in chunks:
        shape = json.dumps(_shape(chunk))
        if not shapes or shapes[-1] != shape:
            shapes.append(shape)
    return shapes


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: v if k in ("finish_reason", "object", "role", "index", "type") else _shape(v) for k, v in value.items()
        }
    return [_shape(v) for v in value] if isinstance(value, list) else type(value).__name__


def _log(server: RunningServer) -> str:
    assert server.log is not None
    return server.log.read_text(encoding="utf-8", errors="replace")


def _lines(text: str) -> list[str]:
    """A log without what may differ: times, numbers, error texts that name them."""
    found = []
    for line in text.splitlines():
        if any(re.search(pattern, line) for pattern in UNEQUAL_LINES):
            continue
        line = re.sub(r"^\d+\.\d\d\.\d{3}\.\d{3} ", "", line)
        line = re.sub(r"(parse error at line) .*", r"\1", line)
        line = line.replace("logits -> logit-bias -> ", "logits -> ")  # asked for to keep the real model writing
        line = re.sub(r"LCP similarity, .*|LRU, .*", "…", line)
        found.append(re.sub(r"[\d.]+|inf|nan", "#", re.sub(r" +", " ", line)))
    return found


def _split(lines: list[str]) -> tuple[list[str], int]:
    """The slot's lines in order, and how many cancel lines there are."""
    own = [line for line in lines if "cancel task" not in line]
    return own, len(lines) - len(own)


def _same_log(real: RunningServer, real_at: int, double: RunningServer, double_at: int) -> None:
    expected = _lines(_log(double)[double_at:])
    for _ in range(100):  # the real server writes its last lines after the answer
        if len(_lines(_log(real)[real_at:])) >= len(expected):
            break
        time.sleep(0.05)
    found = _lines(_log(real)[real_at:])
    # Which task's reader went away is printed by that reader's thread, before or after the slot's own next lines.
    assert _split(expected) == _split(found)


def _timings(response: httpx.Response) -> dict[str, Any]:
    return response.json()["timings"]


HELLO = [user("Say hello to the world in one short sentence please.")]
GOODBYE = [user("Say hello to the world in one short letter please.")]


def calls_to_copy(*, think: bool = False, twice: bool = False) -> list[dict[str, Any]]:
    """A history so even that the smallest model goes on with it: the only way to make it write a tool call."""
    call = {"type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}, "id": "a"}
    reply = {
        "role": "assistant",
        "content": "I read" if think else None,
        "tool_calls": [call, call] if twice else [call],
    }
    if think:
        reply["reasoning_content"] = "a.txt it is"
    turn = [user("read file a.txt"), reply, {"role": "tool", "tool_call_id": "a", "content": "text"}]
    return [*[*turn, {"role": "assistant", "content": "text"}] * 4, user("read file a.txt")]


ONE_TOOL = [t for t in TOOLS if t["function"]["name"] == "read_file"]


def test_reuse_means_the_same(both: Both) -> None:
    first = both.chat(HELLO, max_tokens=12)
    both.chat(HELLO, max_tokens=12)
    said = first.json()["choices"][0]["message"]["content"]
    both.chat([*HELLO, {"role": "assistant", "content": said}, user("again")], max_tokens=5)
    both.chat(GOODBYE, max_tokens=2)
    both.ask("GET", "/slots")
    pairs = both.compare()
    for number in (0, 1):
        cold, again, appended, front, slots = (p[number] for p in pairs)
        prompt, generated = _timings(cold)["prompt_n"], _timings(cold)["predicted_n"]
        assert _timings(cold)["cache_n"] == 0
        assert _timings(again)["cache_n"] == prompt - 1
        assert _timings(again)["prompt_n"] == 1
        # The last sampled token is not in the cache.
        assert _timings(appended)["cache_n"] == prompt + generated - 1
        assert 0 < _timings(front)["cache_n"] < _timings(front)["cache_n"] + _timings(front)["prompt_n"] - 1
        held = front.json()["usage"]["total_tokens"] - 1
        assert slots.json()[0]["n_prompt_tokens"] == held
        for answer in (cold, again, appended, front):
            usage = answer.json()["usage"]
            assert usage["prompt_tokens"] == _timings(answer)["cache_n"] + _timings(answer)["prompt_n"]
            assert usage["prompt_tokens_details"]["cached_tokens"] == _timings(answer)["cache_n"]
            assert usage["completion_tokens"] == _timings(answer)["predicted_n"]


def test_nothing_is_reused_after_an_erase(both: Both) -> None:
    both.chat(HELLO, max_tokens=1)
    both.chat(HELLO, max_tokens=0)
    both.ask("POST", "/slots/0?action=erase")
    both.chat(HELLO, max_tokens=1)
    pairs = both.compare()
    for number in (0, 1):
        first, zero, erased, after = (p[number] for p in pairs)
        assert erased.json() == {"id_slot": 0, "n_erased": first.json()["usage"]["prompt_tokens"]}
        assert _timings(zero)["predicted_n"] == 1
        assert _timings(after)["cache_n"] == 0


def test_a_reply_may_end_at_the_limit_or_at_the_window(both: Both) -> None:
    both.chat([*HELLO], max_tokens=9)
    both.chat([user("word " * (N_CTX - 44))], logit_bias=[[2, False], [0, False]])
    limit, window = both.compare()
    for number in (0, 1):
        assert limit[number].json()["usage"]["completion_tokens"] == 9
        assert window[number].json()["usage"]["total_tokens"] == N_CTX
        assert window[number].json()["choices"][0]["finish_reason"] == "length"


def test_what_does_not_fit_is_refused(both: Both) -> None:
    both.chat(HELLO, max_tokens=3)
    both.chat([user("word " * 1200)])
    both.chat([user("word " * 1200)], stream=True)
    both.chat(HELLO, max_tokens=3)
    _, refused, _, after = both.compare()
    for number in (0, 1):
        error = refused[number].json()["error"]
        assert error["n_ctx"] == N_CTX
        assert error["n_prompt_tokens"] >= N_CTX
        # A refused request leaves the slot as it was.
        assert _timings(after[number])["prompt_n"] == 1


def test_the_window_is_full_at_exactly_n_ctx(real: RunningServer, tmp_path: Path) -> None:
    """A prompt of n_ctx - 1 tokens is answered with one token, a prompt of n_ctx is refused, by both."""
    (tmp_path / "s.yaml").write_text("steps: [{say: word word, repeat: forever}]", encoding="utf-8")
    settings = ServerSettings(kind="scripted", n_ctx=N_CTX, scenario=str(tmp_path / "s.yaml"))
    with open_scripted(settings, tmp_path) as double, httpx.Client(timeout=None, trust_env=False) as http:
        for server in (real, double):
            head = len(server.client().tokenize(template.render({"messages": [user("word")]})) or [])
            content = "word" + " word" * (N_CTX - 1 - head)
            chat = f"{server.base_url}/v1/chat/completions"
            answered = http.post(chat, json={"messages": [user(content)]}).json()
            assert answered["usage"] | {"prompt_tokens_details": None} == {
                "completion_tokens": 1,
                "prompt_tokens": N_CTX - 1,
                "total_tokens": N_CTX,
                "prompt_tokens_details": None,
            }
            refused = http.post(chat, json={"messages": [user(content + " word")]})
            assert refused.status_code == 400
            assert refused.json()["error"]["n_prompt_tokens"] == N_CTX


@pytest.mark.parametrize("think", [False, True])
def test_tool_calls_and_thinking(both: Both, think: bool) -> None:
    history = calls_to_copy(think=think)
    whole = both.chat(history, tools=ONE_TOOL, max_tokens=120)
    message = whole.json()["choices"][0]["message"]
    assert message["tool_calls"], "the model did not go on with the calls"
    answer = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "text"}
    both.chat([*history, message, answer], tools=ONE_TOOL, max_tokens=2)
    both.chat(history, max_tokens=120)
    pairs = both.compare()
    for number in (0, 1):
        first, second = (_timings(p[number]) for p in pairs[:2])
        # The template renders a reply to what was generated, so nothing of it is evaluated again.
        assert second["cache_n"] == first["cache_n"] + first["prompt_n"] + first["predicted_n"] - 1
        assert "<tool_call>" in pairs[2][number].json()["choices"][0]["message"]["content"]


def test_cut_calls(both: Both) -> None:
    """A reply cut at many lengths: the double parses what is there as llama.cpp does."""
    history = calls_to_copy(think=True, twice=True)
    whole = both.ask("POST", "/v1/chat/completions", {"messages": history, "tools": ONE_TOOL, "temperature": 0})
    generated = whole.json()["usage"]["completion_tokens"]
    assert len(whole.json()["choices"][0]["message"]["tool_calls"]) == 2
    seen = []
    for size in (1, 4, 5, 10, 17, 20, 31, 32, 36, 44, generated - 20, generated - 15, generated - 6):
        body = {"messages": history, "tools": ONE_TOOL, "temperature": 0, "max_tokens": size}
        seen.append(both._send(both.real, "POST", "/v1/chat/completions", body).json()["choices"][0]["message"])
    wanted = {json.dumps(_without_ids(m)) for m in seen}
    message = whole.json()["choices"][0]["message"]
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message["tool_calls"]]
    text = template.reply_text(message["reasoning_content"], message["content"], calls)
    ours = {json.dumps(_without_ids(_message(parse(text[:n], tools=True, ended=False)))) for n in range(1, len(text))}
    assert wanted <= ours


def _message(parsed: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": parsed.content}
    if parsed.thinking:
        message["reasoning_content"] = parsed.thinking
    if parsed.calls:
        message["tool_calls"] = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in parsed.calls]
    return message


def _without_ids(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{k: v for k, v in call.items() if k != "id"} for call in message.get("tool_calls", [])]
    return message | ({"tool_calls": calls} if calls else {})


def test_streams(both: Both) -> None:
    both.chat(HELLO, max_tokens=6, stream=True)
    both.chat(HELLO, max_tokens=6, stream=True, stream_options={"include_usage": True})
    both.compare()


BAD_CALL = {"type": "function", "function": {"name": "f", "arguments": "{bad"}, "id": "a"}


def test_requests_that_can_not_be_rendered(both: Both) -> None:
    history = [user("x"), {"role": "assistant", "content": None, "tool_calls": [BAD_CALL]}]
    both.chat([*history, {"role": "tool", "tool_call_id": "a", "content": "r"}], max_tokens=3)
    both.ask("POST", "/v1/chat/completions", {"foo": 1})
    both.ask("POST", "/v1/chat/completions", b"{nope")
    both.chat([{"role": "user"}])
    both.chat([user("a"), {"role": "assistant"}, user("b")])
    both.ask("POST", "/apply-template", {})
    pairs = both.compare()
    assert [p[0].status_code for p in pairs] == [500, 400, 400, 400, 400, 400]


MESSAGES = [
    [user("x")],
    [{"role": "system", "content": "You act."}, user("x")],
    [user("a"), {"role": "system", "content": "s"}, user("b")],
    [user("a"), {"role": "assistant", "content": ""}, user("b")],
    [user("a"), {"role": "assistant", "content": None}, user("b")],
    [user("a"), {"role": "assistant", "content": "begun"}],
    [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    calls_to_copy(think=True, twice=True),
]


def test_templates(both: Both) -> None:
    """The template in Python and the same one in Jinja, rendered by llama.cpp, give the same text."""
    odd = {"path": "a\né <b> it's /x\t", "z": 1.5, "k": [1, 2, {}], "n": None, "b": True, "e": 1e5}
    call = {"type": "function", "function": {"name": "read_file", "arguments": json.dumps(odd)}, "id": "a"}
    reply = {"role": "assistant", "content": "text\n", "reasoning_content": "hm\n", "tool_calls": [call, call]}
    bare = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
    for messages in [*MESSAGES, [user("é"), reply, {"role": "tool", "tool_call_id": "a", "content": ""}]]:
        both.ask("POST", "/apply-template", {"messages": messages})
        both.ask("POST", "/apply-template", {"messages": messages, "tools": [*TOOLS, bare]})
    for real, double in both.compare():
        assert double.json() == real.json()


def test_the_other_endpoints(both: Both) -> None:
    for path in (
        "/health",
        "/v1/health",
        "/props",
        "/v1/models",
        "/models",
        "/metrics",
        "/nope",
        "/v1/chat/completions",
    ):
        both.ask("GET", path)
    for body in (
        {"content": "Hello <|im_start|> world\n"},
        {"content": "é", "with_pieces": True, "add_special": True},
        {},
    ):
        both.ask("POST", "/tokenize", body)
    both.ask("POST", "/detokenize", {})
    both.ask("POST", "/slots/9?action=erase")
    both.ask("POST", "/slots/0?action=foo")
    both.ask("POST", "/slots/x?action=erase")
    both.ask("POST", "/props", {})
    question = {"type": "noul", "instructions": "x"}
    both.ask("POST", "/v1/systemone", {"state": "x", "questions": {"q": question}})
    both.compare()


def test_a_slot_tells_little_before_its_first_request(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("steps: [{say: x}]", encoding="utf-8")
    settings = ServerSettings(kind="scripted", n_ctx=512, scenario=str(tmp_path / "s.yaml"))
    with open_scripted(settings, tmp_path) as double:
        assert double.client().slots() == [{"id": 0, "n_ctx": 512, "speculative": False, "is_processing": False}]
