"""Makes genuine run folders in the documented format, through harness.record's own writer, from a short script of a run.

The token numbers come from toy_slot, so every reply, cut, refusal and clear has true cache arithmetic; server.log has the
lines a llama-server of autumn 2026 prints for the same requests.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toy_slot import ToySlot, body, render, tokenize

from harness.record.conversation import encode_change
from harness.record.counting import count_requests
from harness.record.events import EventWriter, read_events
from harness.record.folder import RunFolder, run_id, write_json
from harness.record.summary import summarise

TOOLS = [{"type": "function", "function": {"name": n}} for n in ("read_file", "write_file", "edit_file", "bash")]
READ_MS, WRITE_MS = 2.5, 11.25
READ_RATE = "tokens (    2.50 ms per token,   400.00 tokens per second)"
WRITE_RATE = "tokens (   11.25 ms per token,    88.89 tokens per second)"


def tests(passed: int, total: int) -> dict[str, Any]:
    """One result of grading.json."""
    names = {f"test_x.py::test_{i}": "passed" if i < passed else "failed" for i in range(total)}
    code = 0 if passed == total else 1
    return {
        "exit_code": code,
        "passed": passed,
        "total": total,
        "tests": names,
        "timed_out": False,
        "ms": 9.0,
        "output": "",
    }


@dataclass
class Recorder:
    """Writes one run. Call the acts in the order of the loop, then `finish`."""

    root: Path
    agent: str = "part3"
    n_ctx: int = 4096
    policy: str = "published"
    seed: int = 0
    task: str = "cart"
    experiment: str = "quick"
    kind: str = "real"
    gate: str = "tests_pass"
    counts: bool = True
    model: str = "qwen2.5-coder-1.5b"
    messages: list[dict[str, Any]] = field(default_factory=list)
    step: int = 0
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        identity = {
            "agent": self.agent,
            "n_ctx": self.n_ctx,
            "seed": self.seed,
            "policy": self.policy,
            "task": self.task,
        }
        self.id = run_id(identity | {"kind": self.kind, "model": self.model})
        self.folder = RunFolder(self.root / self.experiment / self.id)
        self.folder.begin()
        write_json(self.folder.path / "manifest.json", self._manifest(identity))
        self.events = EventWriter(self.folder.events)
        self.slot = ToySlot(self.n_ctx)
        self.task_number = 0
        self.changed = False
        self.elapsed = 0.5
        system, instruction = "You are a coding agent in a repo.", "Fix the bugs so that the tests pass. " * 6
        self.events.emit(
            "start", instruction=instruction, system=system, tools=TOOLS, protocol="native", n_ctx=self.n_ctx,
            max_tokens=None, seed=self.seed, agent=self.agent, mount="/work",
        )  # fmt: skip
        self._append({"role": "system", "content": system})
        self._append({"role": "user", "content": instruction})

    def reply(
        self, text: str = "", call: tuple[str, dict[str, Any]] | None = None, result: str = "", **how: Any
    ) -> None:
        """One step: a request, its reply, and the call it makes. how: thinking, changed, ok, exit_code, drop, finish_reason."""
        if len(tokenize(render(self.messages, TOOLS))) >= self.n_ctx:
            self.overflow()
            self.step += 1
            return
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if how.get("thinking"):
            message["reasoning_content"] = how["thinking"]
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"id": f"c{self.step}", "type": "function", "function": function}]
        cut = self._request(message, how.get("drop", False))
        if cut and how.get("drop"):
            self._append({"role": "user", "content": "Your last answer was cut off."})
        else:
            self._append({k: v for k, v in message.items() if not cut or k != "tool_calls"})
            if call and not cut:
                self._call(call[0], call[1], result, how)
        self.step += 1

    def clear(self, keep: int = 1) -> None:
        """The published kind of clear: everything before the newest `keep` results becomes placeholders."""
        results = [i for i, m in enumerate(self.messages) if m["role"] == "tool"]
        border = results[-keep] if len(results) > keep else 0
        after = [
            m | {"content": "[cleared]"} if m["role"] == "tool" and i < border else m
            for i, m in enumerate(self.messages)
        ]
        changed = sum(a != b for a, b in zip(self.messages, after, strict=True))
        self.events.emit(
            "context", step=self.step, policy=self.policy, reason="above half the window", when="before_send", tokens=None,
            cleared=changed, freed_chars=None, freed_tokens=None, after=encode_change(self.messages, after), decision={},
        )  # fmt: skip
        self.messages = after

    def overflow(self) -> None:
        """A request that the server refuses."""
        self._emit_request()
        size = len(tokenize(render(self.messages, TOOLS)))
        self.events.emit(
            "response", step=self.step, attempt=0, tag="agent", outcome="overflow", kind=None, status=400,
            finish_reason=None, message=None, usage=None, timings=None, error="exceeds the available context size",
            n_prompt=size, n_ctx=self.n_ctx, dropped=False, ms=3.0,
        )  # fmt: skip

    def guard(self, path: str = "test_cart.py", names: tuple[str, ...] = ("test_total",)) -> None:
        self.events.emit(
            "guard", step=self.step, files=[{"path": path, "names": list(names)}], note=f"{path} was put back"
        )

    def finish_check(self, passed: bool) -> None:
        self._pass(460.0)
        self.events.emit(
            "finish_check", step=self.step - 1, gate=self.gate, passed=passed, exit_code=0 if passed else 1,
            last_line="3 passed" if passed else "1 failed", output="", reasons=[], ms=450.0,
        )  # fmt: skip

    def finish(self, reason: str = "declared_done", hidden: tuple[int, int] = (4, 4), **facts: Any) -> RunFolder:
        """Stop, counts, grading, result. facts: files_changed, visible, visible_left, status, start (hidden at the start)."""
        self.events.emit(
            "stop", step=self.step, steps=self.step, reason=reason, declared_done=reason == "declared_done",
            status=facts.get("status"), detail=None, text="done",
        )  # fmt: skip
        if self.counts:
            self.events._file.flush()
            for row in count_requests(list(read_events(self.folder.events)), render, tokenize):
                self.events.emit("count", **row)
        self.events.emit("resources", resident_bytes=1_500_000_000, gpu_bytes=None)
        self.events.close()
        visible = facts.get("visible", (3, 3))
        changed = facts.get("files_changed", 1 if self.changed else 0)
        grading = {
            "hidden": tests(*hidden), "visible": tests(*visible), "visible_left": tests(*facts.get("visible_left", visible)),
            "solved": hidden[0] == hidden[1], "tampered": [], "tests_added": [], "tests_removed": [],
            "files_changed": changed, "changed": ["cart.py"][:changed],
        }  # fmt: skip
        if "start" in facts:
            grading["start"] = {"hidden": tests(*facts["start"]), "visible": tests(3, 3)}
        write_json(self.folder.path / "grading.json", grading)
        (self.folder.path / "workspace.diff").write_text("--- a/cart.py\n+++ b/cart.py\n" if changed else "")
        self.folder.server_log.write_text("\n".join(self.log) + "\n", encoding="utf-8")
        row = summarise(self.folder.manifest(), read_events(self.folder.events), grading)
        write_json(self.folder.path / "result.json", row)
        return self.folder

    def _request(self, message: dict[str, Any], drop: bool) -> bool:
        """Sends the conversation; True when the reply was cut by the window."""
        self._emit_request()
        prompt = tokenize(render(self.messages, TOOLS))
        reused, evaluated = self.slot.evaluate(prompt)
        text = body(message, thinking=True) + "<|im_end|>"
        generated = len(self.slot.generate(tokenize(text)))
        cut = len(prompt) + generated >= self.n_ctx
        timings = {
            "cache_n": reused, "prompt_n": evaluated, "prompt_ms": evaluated * READ_MS,
            "predicted_n": generated, "predicted_ms": generated * WRITE_MS,
        }  # fmt: skip
        calls = [{"id": c["id"], **c["function"]} for c in message.get("tool_calls") or ()]
        self.events.emit(
            "response", step=self.step, attempt=0, tag="agent", outcome="cut" if cut else "reply",
            kind="window" if cut else None, status=200, finish_reason="length" if cut else "stop",
            message={"content": message["content"], "reasoning": message.get("reasoning_content"), "tool_calls": calls},
            usage={"prompt_tokens": len(prompt), "completion_tokens": generated, "total_tokens": len(prompt) + generated},
            timings=timings, error=None, n_prompt=None, n_ctx=None, dropped=cut and drop,
            ms=timings["prompt_ms"] + timings["predicted_ms"] + 1.5,
        )  # fmt: skip
        self._log_request(len(prompt), reused, timings, cut)
        self._pass(timings["prompt_ms"] + timings["predicted_ms"] + 1.5)
        return cut

    def _pass(self, ms: float) -> None:
        """Lets the run's clock go on by what the server or a tool is said to have taken."""
        self.elapsed += ms / 1000
        self.events._start = time.monotonic() - self.elapsed

    def _emit_request(self) -> None:
        self.events.emit(
            "request", step=self.step, attempt=0, tag="agent", n_messages=len(self.messages),
            params={"temperature": 0.6, "seed": self.seed}, tools=True, sha256="0" * 64,
        )  # fmt: skip

    def _log_request(self, prompt: int, reused: int, timings: dict[str, Any], cut: bool) -> None:
        slot = f"id  0 | task {self.task_number}"
        read, written = timings["prompt_n"], timings["predicted_n"]
        read_ms, write_ms = timings["prompt_ms"], timings["predicted_ms"]
        cached = prompt + max(written - 1, 0)
        self.log += [
            f"slot launch_slot_: {slot} | processing task, is_child = 0",
            f"slot update_slots: {slot} | new prompt, n_ctx_slot = {self.n_ctx}, n_keep = 0, task.n_tokens = {prompt}",
            f"slot update_slots: {slot} | cached n_tokens = {reused}, memory_seq_rm [{reused}, end)",
            f"slot print_timing: {slot} | prompt eval time = {read_ms:10.2f} ms / {read:5d} {READ_RATE}",
            f"slot print_timing: {slot} |        eval time = {write_ms:10.2f} ms / {written:5d} {WRITE_RATE}",
            f"slot print_timing: {slot} |       total time = {read_ms + write_ms:10.2f} ms / {read + written:5d} tokens",
            f"slot      release: {slot} | stop processing: n_tokens = {cached}, truncated = {int(cut)}",
            "srv  update_slots: all slots are idle",
            "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200",
        ]  # fmt: skip
        self.task_number += written + 1

    def _append(self, message: dict[str, Any]) -> None:
        self.events.emit("message", step=self.step, index=len(self.messages), message=message)
        self.messages.append(message)

    def _call(self, name: str, arguments: dict[str, Any], result: str, how: dict[str, Any]) -> None:
        changed, ok = how.get("changed", False), how.get("ok", True)
        self._pass(45.0)
        if name == "bash":
            runs = how.get("verdict", "runs") == "runs"
            self.events.emit(
                "approval", step=self.step, call=0, command=arguments["command"], rule="second_printed", rule_version="2",
                verdict="runs" if runs else "asks", reason="", answer=None if runs else how.get("answer", "yes"),
                answered_by=None if runs else "auto_yes", advice=how.get("advice"),
            )  # fmt: skip
            if runs or how.get("answer", "yes") == "yes":
                self.events.emit(
                    "command", step=self.step, call=0, purpose="tool", command=arguments["command"],
                    exit_code=how.get("exit_code", 0), timed_out=False, limit=None, ms=30.0, output_chars=len(result),
                    truncated=False,
                )  # fmt: skip
        if changed:
            self.changed = True
            self.events.emit("tree", step=self.step, digest="d", changes=[{"path": arguments.get("path", "cart.py")}])
        self.events.emit(
            "call", step=self.step, call=0, id=f"c{self.step}", name=name, arguments=json.dumps(arguments), result=result,
            ok=ok, changed=changed, ms=40.0,
        )  # fmt: skip
        self._append({"role": "tool", "tool_call_id": f"c{self.step}", "content": result})

    def _manifest(self, identity: dict[str, Any]) -> dict[str, Any]:
        settings = {
            "agent": {"name": self.agent, "max_steps": 30}, "server": {"kind": "embedded", "n_ctx": self.n_ctx},
            "model": {"name": self.model}, "task": {"name": self.task}, "protocol": {"name": "native"},
            "approval": {"rule": "second_printed"}, "context": {"policy": self.policy}, "finish": {"gate": self.gate},
            "seed": self.seed,
        }  # fmt: skip
        return {
            "format": 1, "run_id": self.id, "experiment": self.experiment, "kind": self.kind, "identity": identity,
            "cell": [f"agent={self.agent}", f"server.n_ctx={self.n_ctx}", f"seed={self.seed}"], "settings": settings,
            "departures": {"server.max_tokens": [None, 512]}, "study": {"commit": "a" * 40, "clean": True},
            "harness": {"version": "0.1.0", "commit": "b" * 40, "clean": True}, "registration": None,
            "versions": {"python": "3.11"}, "host": {"cpu": "some cpu", "cores": 2},
            "model": {"name": self.model, "sha256": "c" * 64, "bytes": 1117320768, "trained_window": 32768},
            "server": {"kind": "embedded", "build": "b10587", "n_ctx": self.n_ctx, "flags": ["-np", "1"], "probe": {}},
            "task": {"name": self.task, "digest": "e" * 64}, "started": "2026-11-30T12:00:00Z",
        }  # fmt: skip


LONG = "def total(items):\n    return sum(item.price for item in items)\n" * 10


def solved_run(root: Path, **settings: Any) -> RunFolder:
    """Reads, edits, tests, is done: an append-only run that solves its task."""
    run = Recorder(root, **({"agent": "part2", "policy": "none"} | settings))
    run.reply("look", ("read_file", {"path": "cart.py"}), LONG)
    run.reply("fix", ("edit_file", {"path": "cart.py", "old": "a", "new": "b"}), "edited cart.py", changed=True)
    run.reply("test", ("bash", {"command": "python -m pytest -q 2>&1 | tail -3"}), "3 passed\n[exit code 0]")
    run.reply("Both bugs are fixed.")
    run.finish_check(True)
    return run.finish(hidden=(4, 4), start=(1, 4))


def clearing_run(root: Path, **settings: Any) -> RunFolder:
    """Clears twice, reads a cleared file again, loses one reply to the window, and ends at the step limit."""
    run = Recorder(root, **({"n_ctx": 2048} | settings))
    run.reply("look", ("read_file", {"path": "cart.py"}), LONG)
    run.reply("tests", ("read_file", {"path": "test_cart.py"}), LONG + "assert 1")
    run.reply("more", ("bash", {"command": "cd /repo && ls"}), "no such folder", verdict="asks", exit_code=1)
    run.clear()
    run.reply("again", ("read_file", {"path": "cart.py"}), LONG)
    run.reply("long " * 1500, drop=True)
    run.guard()
    run.reply("write", ("write_file", {"path": "test_cart.py", "content": LONG}), "wrote 600 characters", changed=True)
    run.clear()
    run.reply("look", ("read_file", {"path": "cart.py"}), LONG)
    return run.finish("step_limit", hidden=(1, 4), start=(2, 4))


def false_run(root: Path, **settings: Any) -> RunFolder:
    """A reply cut by the window is taken as done on an unchanged repo."""
    run = Recorder(root, **({"agent": "part2", "n_ctx": 1024, "policy": "none"} | settings))
    run.reply("look", ("read_file", {"path": "cart.py"}), LONG[:900])
    run.reply("I would write " * 500)
    run.finish_check(True)
    return run.finish(hidden=(2, 4), start=(2, 4))


def quick_grid(root: Path, seeds: int = 3) -> list[RunFolder]:
    """Both agents at two windows over some seeds, with different ends."""
    folders = []
    for seed in range(seeds):
        folders.append(solved_run(root, seed=seed, n_ctx=8192))
        folders.append(solved_run(root, seed=seed, n_ctx=8192, agent="part3", policy="published"))
        folders.append(clearing_run(root, seed=seed))
        folders.append(false_run(root, seed=seed, n_ctx=2048))
    return folders
