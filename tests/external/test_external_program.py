"""What a program is told, what makes its runs' identity, and every wrong request in one line before anything starts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from external_lab import planned

from harness.external.program import BASE_URLS, Given, program_identity
from harness.record.events import read_events
from harness.settings import ExternalSettings, SettingsError
from harness.sweep.compose import Place, cells, hydra_session
from harness.sweep.run import execute
from harness.workspace.jail import required

TELL = """
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "task": open(sys.argv[2]).read()}))
"""
COMMAND = (
    "python {files}/agent.py {task} {task_file} {workspace} {base_url} {root_url} {model} {seed} {n_ctx} {max_tokens} "
    "{max_steps} 'two words' '{\"json\": 1}'"
)


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_the_program_is_told_everything(run_program, kind):
    told = {"env": ("MY_SEED=s{seed}", "OPENAI_MODEL=mine")}
    outcome = run_program(TELL, command=COMMAND, external=told, kind=kind)
    assert outcome.how == ("declared_done", True, 0), outcome.err
    found = json.loads(outcome.out)
    task, _, workspace, base_url, root_url, *rest = found["argv"]
    assert (task, found["task"]) == ("Do it.", "Do it.")
    assert rest == ["some-model", "7", "8192", "0", "30", "two words", '{"json": 1}']
    assert workspace == found["cwd"] == ("/srv/project" if kind == "bubblewrap" else str(outcome.root))
    assert base_url == root_url + "/v1"
    env = found["env"]
    assert {env[k] for k in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "LLAMA_API_BASE")} == {base_url}
    assert (env["OPENAI_API_KEY"], env["MY_SEED"], env["OPENAI_MODEL"]) == ("called-shot", "s7", "mine")


def test_outside_a_sandbox_the_requests_are_recorded_too(run_program):
    program = (
        "import sys, urllib.request\n"
        'urllib.request.urlopen(sys.argv[1] + "/chat/completions", b\'{"messages": [{"role": "user", "content": "hi"}]}\')'
    )
    outcome = run_program(program, kind="none")
    assert outcome.how == ("declared_done", True, 1), outcome.err
    assert outcome.kind("response")[0]["outcome"] == "reply"


def test_a_folder_of_files_is_seen_read_only(run_program, tmp_path):
    (tmp_path / "tool" / "lib").mkdir(parents=True)
    (tmp_path / "tool" / "lib" / "inner.py").write_text("print('inner')\nopen(__file__, 'a')\n")
    outcome = run_program("", command="python {files}/tool/lib/inner.py", external={"files": ("tool",)})
    assert outcome.out == "inner\n"
    assert "Read-only file system" in outcome.err or "Permission denied" in outcome.err


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            ["agent.external.command='python {nope}'"],
            "agent.external.command: no such placeholder {nope}; known: task, ",
        ),
        (["agent.external.command='python \"open'"], "agent.external.command: No closing quotation"),
        (["agent.external.command=''"], "agent.external.command: needs a program"),
        (["agent.external.files=[none/such.py]"], "agent.external.files: none/such.py is neither below"),
        (["agent.external.env=[nonsense]"], "agent.external.env: 'nonsense' is not NAME=value"),
        (
            ["agent.external.packages=[no-such-package-here]"],
            "needs the package no-such-package-here, which is not installed",
        ),
        (
            ["agent.external.packages=[no-such-package-here]", "agent.external.install='pip install it'"],
            "which is not installed; pip install it",
        ),
        (["agent.time_limit_s=null"], "agent.time_limit_s: needs a number of seconds"),
        (["server.record_tape=true"], "server.record_tape: needs another server than a tape"),
    ],
)
def test_a_wrong_request_is_one_line(tmp_path, overrides, words):
    with pytest.raises(SettingsError) as caught:
        planned(tmp_path, "", *overrides)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_the_run_id_depends_on_the_program_and_not_on_its_place(tmp_path):
    one = planned(tmp_path, "print(1)")
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "agent.py"
    moved.write_text("print(1)")
    same = planned(tmp_path, "print(1)", f"agent.external.files=[{moved}]")
    other = planned(tmp_path, "print(2)")
    assert one.run_id == same.run_id != other.run_id
    packaged = planned(tmp_path, "print(1)", "agent.external.packages=[httpx]")
    assert packaged.identity["external"]["packages"].keys() == {"httpx"}


FIXES = """
about: reads the module, repairs both bugs, runs the tests, says so
steps:
- say: '{"thought": "look", "tool": "read", "path": "cart.py"}'
- say: '{"thought": "guess", "tool": "run", "command": "cat /repo/cart.py ../x"}'
- say: '{"thought": "fix", "tool": "run", "command": "sed -i ''s/.1:.)/)/; s/price + price/price - price/'' cart.py"}'
- say: '{"thought": "test", "tool": "run", "command": "python -m pytest -q"}'
- say: '{"thought": "ok", "tool": "done", "summary": "both bugs fixed"}'
"""
NOT_KNOWN = ("rule_version", "gate", "policy", "protocol", "prompts", "auto_run", "refused", "guard_restores",
             "finish_check", "untested_completion", "tool_seconds", "harness_seconds", "repeated_calls")  # fmt: skip


def test_the_example_agent_is_a_run_like_any_other(tmp_path):
    command = "agent.external.command='python {files}/example_agent.py --task-file {task_file} --base-url {base_url} --model m'"
    outcome = execute(planned(tmp_path, "", "agent.external.files=[example_agent.py]", command, scenario=FIXES))
    assert outcome.failure is None
    row = outcome.result
    assert (row["solved"], row["declared_done"], row["steps"], row["kind"]) == (True, True, 5, "scripted")
    assert (row["hidden_passed"], row["visible_left_passed"], row["files_changed"]) == (row["hidden_total"], 2, 1)
    assert (row["recomputed_tokens"], row["new_tokens"]) == (0, row["evaluated_tokens"])
    assert (row["bash_commands"], row["outside_path_commands"], row["guessed_paths"]) == (3, 1, 1)
    assert (row["left_repo"], row["ran_pytest_itself"]) == (True, True)
    assert {row[name] for name in NOT_KNOWN} == {None}
    events = [e["event"] for e in read_events(outcome.folder / "events.jsonl")]
    assert (events[0], events.count("request"), events.count("tree"), events.count("stop")) == ("start", 5, 1, 1)


PAGE = Path(__file__).parents[2] / "docs" / "external_agents.md"
PRESETS = re.findall(r"```yaml[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(PRESETS)))
def test_the_pages_presets_compose_in_a_study_of_ones_own(tmp_path, number):
    """Of the sketches it shows that their keys, placeholders and quoting hold; their programs are not run."""
    text = PRESETS[number]
    if "defaults:" not in text:
        text = f"# @package _global_\ndefaults: [external/example, _self_]\n{text}"
    name = yaml.safe_load(text)["agent"]["name"]
    (tmp_path / "conf" / "agent").mkdir(parents=True)
    (tmp_path / "conf" / "agent" / f"{name}.yaml").write_text(text)
    for file in yaml.safe_load(text)["agent"]["external"]["files"]:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("print(1)\n")
    place = Place(tmp_path, tmp_path / "runs")
    with hydra_session(place) as hydra:
        settings = cells(hydra, [*place.overrides(), f"agent={name}"], False)[0].settings
    external = settings.agent.external
    assert external is not None
    found = program_identity(
        replace(settings, agent=replace(settings.agent, external=replace(external, packages=()))), tmp_path
    )
    assert [*found["files"]] == [Path(f).name for f in external.files]
    assert settings.agent.name == name


def test_every_key_and_placeholder_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    for name in (*Given.__dataclass_fields__, *BASE_URLS):
        assert name in page
    for key in ExternalSettings.__dataclass_fields__:
        assert f"| `{key}` |" in page


def test_what_a_package_needs_only_with_an_extra_comes_when_it_is_asked_for_with_it():
    lines = [
        "httpx[http2, socks]>=0.2; python_version > '3'",
        "h2; extra == 'http2'",
        'other ; extra == "all"',
        "plain",
    ]
    assert list(required(lines)) == [("httpx", frozenset({"http2", "socks"})), ("plain", frozenset())]
    assert [name for name, _ in required(lines, frozenset({"http2"}))] == ["httpx", "h2", "plain"]
