"""One simple command as a judge sees it, with the questions a judge may ask about paths."""

import re
from dataclasses import dataclass, replace
from typing import Protocol, Self

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.state import Outcome, State
from harness.agent.approval.shell.table import Table
from harness.agent.approval.shell.values import Word
from harness.agent.approval.tree import Copy, LeavesCopyError

_HARMLESS_DEVICES = re.compile(r"/dev/(null|stdin|fd/\d+)")
ODD_NAME = re.compile(r"[\s'\"\\]|^-|/-")
"""A name that splits, unquotes or looks like an option where a list of names is read back."""


class Shell(Protocol):
    """What a judge may ask for: judging what a wrapper or a nested script would run."""

    copy: Copy
    table: Table

    def run_words(self, words: list[Word], state: State, *, kept: bool) -> Outcome: ...

    def run_text(self, text: str, state: State) -> Outcome: ...

    def jump(self, state: State) -> None: ...


@dataclass(frozen=True)
class Call:
    """`name` and `args` of a command; `kept`: its output goes to a pipe or a redirection."""

    name: str
    args: tuple[Word, ...]
    state: State
    shell: Shell
    kept: bool = False

    def with_args(self, args: list[Word] | tuple[Word, ...], name: str | None = None) -> Self:
        """The same call with other arguments."""
        return replace(self, args=tuple(args), name=name or self.name)

    def places(self, word: Word) -> list[str]:
        """Where the path `word` lies, one place per possible folder; asks when it is unknown or leads out."""
        if word.names_from is not None and word.names_from == self.state.cwds:
            return []
        if word.text is None:
            raise AsksError(f"{self.name}: a path that is not known")
        try:
            return [self.shell.copy.locate(word.text, cwd) for cwd in sorted(self.state.cwds)]
        except LeavesCopyError as error:
            raise AsksError(str(error)) from None

    def read(self, word: Word) -> None:
        """Ask unless reading the path `word` stays inside the copy (standard input and the null device are fine)."""
        if word.text is not None and (word.text == "-" or _HARMLESS_DEVICES.fullmatch(word.text)):
            return
        self.places(word)

    def no_links_below(self, words: tuple[Word, ...]) -> None:
        """Ask where a link below one of the folders leads out of the copy."""
        for place in self.folders(words):
            for inner, kind in self.below(place):
                if kind == "link" and self.shell.copy.leads_out(f"{place}/{inner}"):
                    raise AsksError(f"{inner} is a link that leads out of the repo")

    def folders(self, words: tuple[Word, ...]) -> list[str]:
        """The places of `words`, or the current folders when there are none."""
        if not words:
            return sorted(self.state.cwds)
        return [place for word in words for place in self.places(word)]

    def below(self, place: str) -> list[tuple[str, str]]:
        """Everything below a folder as (relative path, kind)."""
        try:
            return list(self.shell.copy.below(place))
        except RuntimeError as error:
            raise AsksError(str(error)) from None
