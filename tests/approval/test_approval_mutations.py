"""A command that should ask asks in every disguise; one that runs changes its verdict in none that means the same."""

import re
import shlex
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agent.approval import rule
from harness.agent.approval.labelled import load

DATA = Path(__file__).parent / "data"
FILES = ("corpus", "own_commands", "held_out", "third_sample", "fourth_sample", "fifth_sample")
COMMANDS = [c for name in FILES for c in load(DATA / f"{name}.yaml")]
# Whether nohup writes depends on what is around it.
DANGEROUS = [c.command for c in COMMANDS if c.should_ask and "nohup" not in c.command]
HARMLESS = [c.command for c in COMMANDS if not c.should_ask and rule("parsed").judge(c.command).runs]
parsed = rule("parsed")

# Ways to run a whole line inside something harmless. A heredoc or comment at its end needs the newline.
AROUND = st.sampled_from(
    [
        "{}", "ls; {}", "ls && {}", "ls || {}", "ls\n{}", "{}\nls", "( {}\n)", "{{ {}\n}}", "if true; then\n{}\nfi", "true & {}",
        "if ls; then :; else\n{}\nfi", "for i in 1 2; do\n{}\ndone", "echo \"$( {}\n)\"", "x=$( {}\n)", "[ -n \"$( {}\n)\" ]",
        "cd . && {}", "ls | {}", "! {}", "  {}", "\t{}", "cat <( {}\n)", "while read x; do\n{}\ndone < todo.py",
        "case a in a)\n{}\n;; esac", "x=1; {}", "# harmless\n{}", "ls # harmless\n{}", "ls \\\n -a; {}",
    ]
)  # fmt: skip
WRAPPED = st.sampled_from(
    ["bash -c {}", "sh -ec {}", "eval {}", "timeout 5 bash -c {}", "env LANG=C sh -c {}", "nice bash -c {}"]
)
PREFIX = st.sampled_from(
    ["env ", "nice -n 5 ", "timeout 10 ", "command ", "time ", "LANG=C ", "stdbuf -oL ", "exec ", "xargs "]
)
SIMPLE = [c for c in DANGEROUS if re.fullmatch(r"[a-z][\w ./=:,+-]*", c)]
# tree-sitter loses the blank between a lone dash and a redirection, which asks.
PLAIN = [c for c in HARMLESS if re.fullmatch(r"(?!cd |set |time |true$|export|echo)[a-z][\w ./=:,+-]*(?<! -)", c)]


@settings(max_examples=150)
@given(st.sampled_from(DANGEROUS), AROUND, AROUND)
def test_no_surroundings_hide_a_dangerous_command(command, inner, outer):
    disguised = outer.format(inner.format(command))
    assert not parsed.judge(disguised).runs, disguised


@settings(max_examples=100)
@given(st.sampled_from(DANGEROUS), WRAPPED)
def test_no_other_shell_hides_a_dangerous_command(command, wrapper):
    disguised = wrapper.format(shlex.quote(command))
    assert not parsed.judge(disguised).runs, disguised


@settings(max_examples=100)
@given(st.sampled_from(SIMPLE), PREFIX)
def test_no_prefix_hides_a_dangerous_command(command, prefix):
    assert not parsed.judge(prefix + command).runs


@st.composite
def requoted(draw, command: str) -> str:
    """The same simple command with its characters quoted at random."""
    out = []
    for word in command.split(" "):
        pieces = []
        for char in word:
            way = draw(
                st.sampled_from(["{}", "{}", "'{}'", '"{}"', "\\{}", "{}''", '""{}', "$'\\x{:02x}'", "$'\\{:03o}'"])
            )
            pieces.append(way.format(ord(char)) if "$" in way else way.format(char))
        out.append("".join(pieces))
    return draw(st.sampled_from([" ", "  ", "\t", " \\\n "])).join(out)


@settings(max_examples=150)
@given(st.sampled_from(SIMPLE).flatmap(requoted))
def test_no_quoting_hides_a_dangerous_command(command):
    assert not parsed.judge(command).runs, command


@settings(max_examples=100)
@given(st.sampled_from(PLAIN), st.data())
def test_plain_quoting_does_not_make_a_harmless_command_ask(command, data):
    quoted = " ".join(data.draw(st.sampled_from([w, f"'{w}'", f'"{w}"', f"{w[:1]}'{w[1:]}'"])) for w in command.split())
    verdict = parsed.judge(quoted)
    assert verdict.runs, (quoted, verdict.reason)


@settings(max_examples=100)
@given(
    st.sampled_from(PLAIN),
    st.sampled_from(["ls; {}", "{} | cat", "{} 2>&1", "{} 2>/dev/null", "( {} )", "{} && pwd", "{} || true"]),
)
def test_plain_joining_does_not_make_a_harmless_command_ask(command, around):
    verdict = parsed.judge(around.format(command))
    assert verdict.runs, (around.format(command), verdict.reason)


@settings(max_examples=100)
@given(
    st.sampled_from(PLAIN),
    st.sampled_from(["/etc/passwd", "../x", "~/x", "outlink/x", "$HOME", "`rm x`", "$(rm x)", "> x", ">>todo.py"]),
)
def test_a_way_out_added_to_a_harmless_command_asks(command, added):
    assert not parsed.judge(f"cat {added}; {command}").runs
    assert not parsed.judge(f"{command}; ls {added}").runs
    assert not parsed.judge(f"{command} | cat - {added}").runs
