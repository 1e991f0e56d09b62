"""An awk program, read token by token: computing and printing is fine, files, pipes and programs are not."""

import re

from harness.agent.approval.shell.asks import AsksError

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\n|\#[^\n]*)
      |(?P<newline>\n)
      |(?P<string>"(?:\\.|[^"\\\n])*")
      |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)
      |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
      |(?P<operator>\+\+|--|&&|\|\||[<>=!]=|!~|[-+*/%^]=|[-+*/%^<>=!~?:,;(){}\[\]$|&@])""",
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?:\\.|[^/\\\n\[]|\[\^?\]?[^\]/\\\n]*\])+/")
_REFUSED = {
    "system",
    "getline",
    "ENVIRON",
    "ARGV",
    "ARGC",
    "PROCINFO",
    "SYMTAB",
    "FUNCTAB",
    "close",
    "function",
    "func",
}
_BEFORE_REGEX_NAMES = {"print", "printf", "return", "in", "case", "if", "while", "do", "else"}


def check(program: str) -> None:
    """Ask unless the program can neither open nor run anything."""
    at, previous, kind = 0, "", "operator"
    printing, depth = False, 0
    while at < len(program):
        if program[at] == "/" and _regex_may_start(previous, kind):
            matched = _REGEX.match(program, at)
            if not matched:
                raise AsksError("an awk expression that is not clear")
            at, previous, kind = matched.end(), "/", "number"
            continue
        token = _TOKEN.match(program, at)
        if not token:
            raise AsksError("an awk program that is not clear")
        text, at = token.group(), token.end()
        if token.lastgroup == "blank":
            continue
        if text in _REFUSED or text in ("|", "@", "&"):
            raise AsksError(f"awk {text!r} is not in the table")
        if text in ("print", "printf"):
            printing, depth = True, 0
        elif text in (";", "}") or (text == "\n" and previous not in (",", "&&", "||")):
            printing = False
        depth += text == "("
        depth -= text == ")"
        if text == ">" and printing and depth <= 0:
            raise AsksError("awk writes to a file")
        previous, kind = text, str(token.lastgroup)


def _regex_may_start(previous: str, kind: str) -> bool:
    if kind == "name":
        return previous in _BEFORE_REGEX_NAMES
    return kind in ("operator", "newline") and previous not in (")", "]", "$", "++", "--")
