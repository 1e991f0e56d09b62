"""What words and expansions can be: known text, names inside the copy, a number, or unknown."""

from dataclasses import dataclass
from typing import Literal

Dialect = Literal["bash", "dash"]


@dataclass(frozen=True)
class Value:
    """What an expansion may give. `text`: exactly this. `names_from`: names inside the copy as seen from these folders,
    none of which starts with a dash, holds blanks or leads out. `number`: a number, or nothing where counting failed.
    None of them: any text made by the script itself.
    """

    text: str | None = None
    names_from: frozenset[str] | None = None
    number: bool = False


NUMBER = Value(text="0")
"""Some number, for certain; judges treat every number alike."""
COUNT = Value(number=True)
UNKNOWN = Value()


@dataclass(frozen=True)
class Word:
    """One word as a program gets it. `prefix` is the known start of a word that is not wholly known; `many`: it stands
    for any number of such words, none included.
    """

    text: str | None
    prefix: str = ""
    names_from: frozenset[str] | None = None
    number: bool = False
    many: bool = False

    @property
    def may_be_option(self) -> bool:
        """True where the word starts, or may start, with a dash."""
        if self.text is not None:
            return self.text.startswith("-") and self.text != "-"
        return self.names_from is None and not self.number and self.prefix[:1] in ("", "-")


def known(text: str) -> Word:
    """A word of known text."""
    return Word(text=text, prefix=text)
