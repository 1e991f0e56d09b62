"""A small coding agent of the usual kind, to be run by itself; it knows nothing of the harness. Standard library only.

    python example_agent.py --task-file TASK.md --base-url http://127.0.0.1:8080/v1 --model NAME [--seed N] [--temperature T]

It works in the current directory. Every reply of the model is one JSON object, which a schema enforces where the server can: a
thought, a tool (read, write, run, done) and what the tool needs. Exit status 0: the model said that it
is done; 1: it did not get there.
"""

import argparse
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

SYSTEM = """You are a coding agent in a repo, which is the current directory. Every reply is one JSON object:
{"thought": "a short plan for this step", "tool": "read", "path": "file.py"}
{"thought": "...", "tool": "write", "path": "file.py", "text": "the whole new content of the file"}
{"thought": "...", "tool": "run", "command": "a shell command, for example: python -m pytest -q"}
{"thought": "...", "tool": "done", "summary": "what was changed"}
One small step per reply. Only what the tools report is true. Say done when the tests pass because of your changes."""
NEEDS = {"read": ["path"], "write": ["path", "text"], "run": ["command"], "done": ["summary"]}
SHOWN = 4000


def schema():
    """One form per tool; the model's reply is one of them."""
    forms = []
    for tool, fields in NEEDS.items():
        texts = {name: {"type": "string"} for name in ("thought", *fields)}
        keys = ["thought", "tool", *fields]
        properties = {"thought": texts["thought"], "tool": {"const": tool}, **{f: texts[f] for f in fields}}
        forms.append({"type": "object", "properties": properties, "required": keys, "additionalProperties": False})
    return {"type": "json_schema", "json_schema": {"name": "step", "strict": True, "schema": {"anyOf": forms}}}


def ask(args, messages, step):
    """The model's next reply, as text."""
    body = {"model": args.model, "messages": messages, "temperature": args.temperature, "seed": args.seed * 1000 + step}
    body["response_format"] = schema()
    if args.max_tokens:
        body["max_tokens"] = args.max_tokens
    request = urllib.request.Request(args.base_url + "/chat/completions", json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["message"]["content"] or ""
    except urllib.error.HTTPError as e:
        sys.exit(f"the server answered {e.code}: {e.read().decode(errors='replace')[:500]}")
    except OSError as e:
        sys.exit(f"the server can't be reached: {e}")


def act(call):
    """What one call gives the model to read."""
    tool = call["tool"]
    if tool == "run":
        try:
            ran = subprocess.run(["bash", "-c", call["command"]], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return "the command took more than 60 seconds and was ended"
        # How long the tests took says nothing, and would make two equal runs differ.
        text = re.sub(r" in \d+\.\d+s", "", ran.stdout + ran.stderr)[-SHOWN:]
        return f"exit status {ran.returncode}\n{text}"
    path = Path(call["path"])
    try:
        if tool == "read":
            return path.read_text()[:SHOWN]
        path.write_text(call["text"])
        return f"{path} is written"
    except (OSError, UnicodeError) as e:
        return f"error: {e}"


def parse(reply):
    """(call, what is wrong with it)."""
    try:
        call = json.loads(reply[reply.index("{") : reply.rindex("}") + 1], strict=False)
    except ValueError:
        return None, "error: the reply was not one JSON object"
    fields = NEEDS.get(call.get("tool"))
    if fields is None or not all(isinstance(call.get(name), str) for name in fields):
        return None, f"error: tool must be one of {', '.join(NEEDS)}, with its fields as texts"
    return call, None


def main():
    parser = argparse.ArgumentParser()
    for name in ("task-file", "base-url", "model"):
        parser.add_argument(f"--{name}", required=True)
    for name, kind, default in (
        ("seed", int, 0),
        ("temperature", float, 0.6),
        ("max-tokens", int, 0),
        ("steps", int, 100),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default)
    args = parser.parse_args()
    files = sorted(p for p in Path().glob("*.py") if p.stat().st_size < SHOWN)
    shown = "\n\n".join(f"{p}:\n```\n{p.read_text(errors='replace')}\n```" for p in files)
    task = f"{Path(args.task_file).read_text()}\n\nThe files of the repo:\n\n{shown}"
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    for step in range(args.steps):
        reply = ask(args, messages, step)
        call, result = parse(reply)
        print(f"--- {step}\n{reply}", flush=True)
        if call and call["tool"] == "done":
            return
        result = result or act(call)
        print(result, flush=True)
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": result}]
    sys.exit(f"not done after {args.steps} steps")


if __name__ == "__main__":
    main()
