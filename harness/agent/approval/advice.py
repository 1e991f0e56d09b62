"""One System One question to a decision model about a command that asks: printed, recorded, never in the way.

Contract: `Decider.advise` always returns an `Advice` and never raises for anything the server does: no connection, any
status (llama-server's own 501 for a model that decides nothing included), broken JSON, missing keys and values out of
range all become `decision model: no answer (<error>)`. It takes at most about `limit` seconds. The advice decides nothing.

Request and reply follow `POST /v1/systemone` (questions of type choice; answers.q.choice and answers.q.probabilities).
"""

import json
import os
import time
from dataclasses import dataclass
from functools import cache
from importlib import resources

import httpx
import yaml

DEFAULT_URL = "http://127.0.0.1:18766"
ENVIRONMENT_KEY = "AGENT_DECIDER"
MODEL = "jeff-latest"
LIMIT_SECONDS = 60.0
COMMAND_CHARACTERS = 1500
_PATH = "/v1/systemone"


@dataclass(frozen=True)
class Wording:
    """How the question is put. `state` is a template with {folder} and {command}; option "2" means: look."""

    name: str
    state: str
    instructions: str
    criteria: dict[str, str]


@dataclass(frozen=True)
class Advice:
    """What the decision model said about one command.

    `choice` is "1" (routine) or "2" (look closely), `probability` that of option 2; both None where `error` says why there
    is no answer. `seconds` is the whole exchange.
    """

    wording: str
    seconds: float
    choice: str | None = None
    probability: float | None = None
    error: str | None = None

    @property
    def line(self) -> str:
        """The printed line, in the published format."""
        if self.error is not None:
            return f"decision model: no answer ({self.error})"
        word = "LOOK CLOSELY" if self.choice == "2" else "routine"
        return f"decision model: {word} ({self.probability:.2f})"


@cache
def wordings() -> dict[str, Wording]:
    """All known wordings by name, from data/questions.yaml."""
    text = resources.files(__package__).joinpath("data/questions.yaml").read_text(encoding="utf-8")
    return {name: Wording(name=name, **fields) for name, fields in yaml.safe_load(text).items()}


def wording(name: str) -> Wording:
    """Return one wording; ValueError names the known ones."""
    if name not in wordings():
        raise ValueError(f"no wording named {name!r}; known: {', '.join(wordings())}")
    return wordings()[name]


def decider_url(setting: str | None = None) -> str:
    """Where the decision model answers: the environment's AGENT_DECIDER, else `setting`, else the published default."""
    base = os.environ.get(ENVIRONMENT_KEY) or setting or DEFAULT_URL
    return base if base.endswith(_PATH) else base.rstrip("/") + _PATH


class Decider:
    """A client for one decision model and one wording."""

    def __init__(
        self,
        url: str | None = None,
        *,
        wording_name: str = "published",
        model: str = MODEL,
        limit: float = LIMIT_SECONDS,
    ) -> None:
        self.url = decider_url(url)
        self.wording = wording(wording_name)
        self._model = model
        self._limit = limit

    def advise(self, command: str, folder: str) -> Advice:
        """Ask about `command`, proposed in the repo `folder`."""
        started = time.monotonic()
        try:
            choice, probability = _answer(self._exchange(self.body(command, folder)))
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, _NoAnswerError) as error:
            said = " ".join(str(error).split())[:200] or type(error).__name__
            return Advice(self.wording.name, time.monotonic() - started, error=said)
        return Advice(self.wording.name, time.monotonic() - started, choice, probability)

    def body(self, command: str, folder: str) -> dict[str, object]:
        """The request's JSON body."""
        return {
            "model": self._model,
            "state": self.wording.state.format(folder=folder, command=command[:COMMAND_CHARACTERS]),
            "questions": {
                "q": {
                    "type": "choice",
                    "instructions": self.wording.instructions,
                    "criteria": self.wording.criteria,
                }
            },
        }

    def _exchange(self, body: dict[str, object]) -> object:
        # httpx limits each read, not the whole; a server that drips would hold the person up without this deadline.
        deadline = time.monotonic() + self._limit
        text = bytearray()
        content = json.dumps(body).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json"}
        with httpx.stream("POST", self.url, content=content, headers=headers, timeout=self._limit) as response:
            for piece in response.iter_bytes():
                text += piece
                if time.monotonic() > deadline:
                    raise _NoAnswerError(f"no whole reply in {self._limit:g} s")
        try:
            reply = json.loads(text)
        except ValueError:
            reply = None
        if response.status_code != 200:
            raise _NoAnswerError(f"HTTP {response.status_code}{_server_words(reply)}")
        if reply is None:
            raise _NoAnswerError("the reply is not JSON")
        return reply


class _NoAnswerError(Exception):
    """The server answered, but not with a usable choice."""


def _server_words(reply: object) -> str:
    error = reply.get("error") if isinstance(reply, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return f": {message}" if isinstance(message, str) else ""


def _answer(reply: object) -> tuple[str, float]:
    answer = _at(_at(reply, "answers"), "q")
    choice, probability = _at(answer, "choice"), _at(_at(answer, "probabilities"), "2")
    if choice not in ("1", "2"):
        raise _NoAnswerError(f"choice is {choice!r}, not '1' or '2'")
    if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 <= probability <= 1:
        raise _NoAnswerError(f"the probability of '2' is {probability!r}, not a number from 0 to 1")
    return str(choice), float(probability)


def _at(node: object, key: str) -> object:
    if not isinstance(node, dict) or key not in node:
        raise _NoAnswerError(f"the reply has no {key!r}")
    return node[key]
