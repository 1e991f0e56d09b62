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
# After these words a slash opens an expression; after any other name, a number or a closing bracket it divides.
_KEYWORDS = {
    *(
        "BEGIN",
        "END",
        "BEGINFILE",
        "ENDFILE",
        "if",
        "else",
        "while",
        "for",
        "do",
        "break",
        "continue",
        "next",
        "nextfile",
    ),
    *("exit", "return", "delete", "in", "print", "printf", "switch", "case", "default"),
}


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
        if program[at] == "/":
            _check_division(program[at + 1 :])
        token = _TOKEN.match(program, at)
        if not token:
            raise AsksError("an awk program that is not clear")
        text, at = token.group(), token.end()
        if token.lastgroup == "blank":
            if text[0] == "#" and "/" in program[: token.start()]:
                raise AsksError("an awk comment that is not clear")
            continue
        if text == "length" and program[at:].lstrip(" \t").startswith("/"):
            raise AsksError("an awk expression that is not clear")
        if text in _REFUSED or text in ("|", "@", "&"):
            raise AsksError(f"awk {text!r} is not in the table")
        if text in ("print", "printf"):
            printing, depth = True, 0
        elif text in (";", "}") or (text == "\n" and previous not in (",", "&&", "||", "?", ":")):
            printing = False
        depth += text == "("
        depth -= text == ")"
        if text == ">" and printing and depth <= 0:
            raise AsksError("awk writes to a file")
        previous, kind = text, str(token.lastgroup)


def _regex_may_start(previous: str, kind: str) -> bool:
    if kind == "name":
        return previous in _KEYWORDS
    return kind in ("operator", "newline") and previous not in (")", "]", "++", "--")


def _check_division(rest: str) -> None:
    """Ask where a slash read as a division could open an expression that hides a quote or a comment."""
    between = rest.split("\n")[0].split("/")
    if len(between) > 1 and any(mark in between[0] for mark in '"#\\'):
        raise AsksError("an awk expression that is not clear")
