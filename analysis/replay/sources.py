"""Where a recorded run's tokens come from: the double's own tokenizer, or the served model's, loaded once for what is new.

A real run names its model by digest. Its texts are tokenised by llama.cpp with that very file, in a small server of its own
that is started only when a text was not seen before; results stay on disk (TokenStore). The template is the model's own (or
the one the run was given), rendered here and, where sizes say that it differs, by that server.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from analysis.replay.errors import ReplayError
from analysis.replay.material import Material
from analysis.replay.prompts import Prompts, Render
from analysis.replay.store import TokenStore
from analysis.replay.template import LocalTemplate, Message
from harness.agent.protocol import protocol
from harness.models import ModelError, resolve
from harness.models.settings import store_settings
from harness.record.folder import read_json, write_json
from harness.serving.pieces import PieceTokens
from harness.serving.running import RunningServer
from harness.serving.scripted import template as double_template
from harness.serving.scripted import tokenizer as double_tokenizer
from harness.serving.scripted.errors import Refused
from harness.serving.servers import open_server
from harness.settings import ServerSettings

TOKENS = "tokens"
WINDOW = 256  # the tokenizer's server evaluates nothing


class Vocabulary:
    """One model file's tokenizer and template. given_template: another one than the model's own, None for that."""

    def __init__(self, model: Any, folder: Path | None, chat_template: str | None) -> None:
        self.model = model
        self.given_template = chat_template
        self._folder = folder
        self._stack = ExitStack()
        self._server: RunningServer | None = None
        self.store = TokenStore(folder, model.sha256)
        self.pieces = PieceTokens(self._tokenize, self.store)
        self._facts: dict[str, Any] | None = None

    def server(self) -> RunningServer:
        """The model's server, started now if it does not run yet."""
        if self._server is None:
            settings = ServerSettings(kind="embedded", n_ctx=WINDOW, threads=1)
            place = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="calledshot-tokens-")))
            self._server = self._stack.enter_context(
                open_server(settings, self.model, place, chat_template=self.given_template)
            )
        return self._server

    def local(self) -> LocalTemplate:
        facts = self._facts or self._known_facts()
        self._facts = facts
        specials = {k: facts[k] for k in ("bos_token", "eos_token") if isinstance(facts.get(k), str)}
        return LocalTemplate(facts["chat_template"], specials)

    def close(self) -> None:
        self.store.close()
        self._stack.close()

    def _tokenize(self, text: str, add_special: bool) -> list[int] | None:
        return self.server().client().tokenize(text, add_special=add_special)

    def _known_facts(self) -> dict[str, Any]:
        """The template and the special tokens' names, as the server shows them; kept beside the tokens for the model's own."""
        file = None if self._folder is None or self.given_template else self._folder / f"{self.model.sha256[:16]}.json"
        if file is not None and file.is_file():
            return read_json(file)
        props = self.server().props or {}
        facts = {k: props.get(k) for k in ("chat_template", "bos_token", "eos_token")}
        if not isinstance(facts["chat_template"], str):
            raise ReplayError(f"the model {self.model.name} has no chat template; a replay needs one")
        if file is not None:
            write_json(file, facts)
        return facts


class Sources:
    """Prompts for runs of any kind; a context manager, because models may be loaded meanwhile."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else store_settings().folder.parent / TOKENS
        self._vocabularies: dict[tuple[str, str | None], Vocabulary] = {}
        self._double = PieceTokens(_double_tokens, {})

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *exc: object) -> None:
        for vocabulary in self._vocabularies.values():
            vocabulary.close()

    def prompts(self, manifest: dict[str, Any], protocol_name: str, tools: list[dict[str, Any]] | None) -> Prompts:
        """How this run's conversations become tokens. Raises ReplayError when its tokenizer can't be had."""
        wire = protocol(protocol_name).wire
        if manifest["kind"] == "scripted":
            return Prompts(wire, tools, _double_render, self._double)
        vocabulary = self.vocabulary(manifest)
        return Prompts(wire, tools, vocabulary.local(), vocabulary.pieces)

    def by_server(self, manifest: dict[str, Any]) -> Render:
        """The rendering of a real run's server, for a template that can't be rendered here."""
        return self.vocabulary(manifest).server().client().apply_template

    def vocabulary(self, manifest: dict[str, Any]) -> Vocabulary:
        named = manifest.get("model") or {}
        sha256, where = named.get("sha256"), manifest.get("run_id")
        if not sha256:
            raise ReplayError(
                f"run {where}: it names no model file, so its tokens can't be counted; replay runs of a local model"
            )
        given = ((manifest.get("settings") or {}).get("model") or {}).get("chat_template")
        key = (sha256, given)
        if key not in self._vocabularies:
            self._vocabularies[key] = Vocabulary(_find(named, where), self._folder, given)
        return self._vocabularies[key]


def double_prompts(found: Material) -> Prompts:
    """Prompts of a run of the scripted double, whose tokenizer needs no model."""
    pieces = PieceTokens(_double_tokens, {})
    return Prompts(protocol(found.protocol).wire, found.tools, _double_render, pieces)


def _double_tokens(text: str, _: bool) -> list[int]:
    return double_tokenizer.tokenize(text)


def _find(named: dict[str, Any], run: Any) -> Any:
    problem = ""
    for place in (named.get("name"), named.get("path")):
        if not place:
            continue
        try:
            model = resolve(place)
        except (ModelError, ValueError) as e:
            problem = problem or str(e)
            continue
        if model.sha256 == named["sha256"]:
            return model
        problem = problem or f"{model.path} has another digest"
    raise ReplayError(f"run {run}: its model {named.get('name')} ({named['sha256'][:12]}) is not here: {problem}")


def _double_render(messages: list[Message], tools: list[dict[str, Any]] | None) -> str | None:
    try:
        return double_template.render({"messages": messages, "tools": tools}, check_arguments=False)
    except Refused:
        return None
