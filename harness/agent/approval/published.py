"""The four rules of the published articles, as one parametrised check of the text.

Contract: verdicts are the articles' (restated in the project's notes), known holes included: these rules are what was in
force in the published runs and are kept to be compared with, not to be improved. Changes belong into a new rule.
"""

import re
import shlex
from dataclasses import dataclass

from harness.agent.approval.types import Verdict

_FIRST_WORDS = frozenset({"ls", "cat", "head", "tail", "grep", "wc", "pytest"})
_SECOND_WORDS = _FIRST_WORDS | {"find", "echo", "pwd", "true"}
_FIND_ACTIONS = ("-exec", "-ok", "-delete", "-fprint", "-fls")
_INTERPRETERS = ("python", "python3")


@dataclass(frozen=True)
class AskAll:
    """Part 1: every command asks."""

    name: str = "ask_all"
    version: str = "1"

    def judge(self, command: str) -> Verdict:
        """Ask, whatever `command` is."""
        return Verdict(False, "every command asks")


@dataclass(frozen=True)
class WordRule:
    """A list of words, a list of forbidden texts, and a way to cut the line.

    `deleted` texts are removed one after the other before anything else; `forbidden` texts ask; `joints` (longest first)
    cut the line into pieces, each of which must start with one of `words` and name no path that leads out. With
    `after_equals` the path test looks at what follows the last `=` of a word, otherwise at the start of the word.
    """

    name: str
    words: frozenset[str]
    forbidden: tuple[str, ...]
    joints: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    after_equals: bool = False
    version: str = "1"

    def judge(self, command: str) -> Verdict:
        """Apply the steps of the published rule, in their order, to the raw text."""
        for text in self.deleted:
            command = command.replace(text, "")
        for text in self.forbidden:
            if text in command:
                return Verdict(False, f"contains {text!r}")
        pieces = re.split("|".join(map(re.escape, self.joints)), command) if self.joints else [command]
        for piece in pieces:
            if complaint := self._complaint(piece):
                return Verdict(False, complaint)
        return Verdict(True, "only listed words")

    def _complaint(self, piece: str) -> str | None:
        try:
            words = shlex.split(piece)
        except ValueError:
            return "unbalanced quotes"
        if len(words) >= 2 and words[0] in _INTERPRETERS and words[1] == "-m":
            words = words[2:]
        if not words:
            return "an empty piece"
        if words[0] not in self.words:
            return f"{words[0]!r} is not a listed word"
        for word in words[1:]:
            start = word.rsplit("=", 1)[-1] if self.after_equals else word
            if start.startswith(("/", "~")) or ".." in word:
                return f"{word!r} may lead out of the repo"
        return None


FIRST = WordRule(
    name="first",
    words=_FIRST_WORDS,
    forbidden=(";", "&", "|", "<", ">", "$", "`", "\n"),
)
SECOND_AS_RUN = WordRule(
    name="second_as_run",
    words=_SECOND_WORDS,
    forbidden=("<", ">", "$", "`", "\n", *_FIND_ACTIONS),
    joints=("||", "&&", "|", ";"),
    deleted=("2>&1", "2>/dev/null"),
)
SECOND_PRINTED = WordRule(
    name="second_printed",
    words=_SECOND_WORDS,
    forbidden=SECOND_AS_RUN.forbidden,
    joints=(*SECOND_AS_RUN.joints, "&"),
    deleted=SECOND_AS_RUN.deleted,
    after_equals=True,
)
