"""Statements: what may run after what, in which folder, with which variables.

Contract: `Script.run_text` judges a whole command line and raises AsksError at the first thing that is not known to be
harmless. Every simple command is met, wherever it stands: lists, pipelines, loops, conditionals, subshells,
substitutions in words, heredocs and assignments. Syntax that is not named here asks.
"""

from dataclasses import dataclass, field, replace
from itertools import zip_longest

from harness.agent.approval.shell import redirects
from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.dispatch import run_call
from harness.agent.approval.shell.expansion import Expansion
from harness.agent.approval.shell.nodes import Node
from harness.agent.approval.shell.source import parse
from harness.agent.approval.shell.state import Outcome, State
from harness.agent.approval.shell.table import Table
from harness.agent.approval.shell.values import UNKNOWN, Dialect, Value, Word, known
from harness.agent.approval.shell.words import single, words_of
from harness.agent.approval.tree import Copy

_MAX_NESTING = 5
_MAX_PASSES = 4
_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")


@dataclass
class Script:
    """One command line being judged. `jumps` collects the states in which a loop's body may be left early."""

    copy: Copy
    table: Table
    dialect: Dialect
    nesting: int = 0
    source: bytes = b""
    jumps: list[list[State]] = field(default_factory=list)

    def run_text(self, text: str, state: State) -> Outcome:
        """Judge a command line (also one handed to eval or to another shell)."""
        if self.nesting >= _MAX_NESTING:
            raise AsksError("commands nested too deeply")
        root, source = parse(text)
        inner = replace(self, nesting=self.nesting + 1, source=source)
        return inner.sequence(root.children, state)

    def run_words(self, words: list[Word], state: State, *, kept: bool) -> Outcome:
        """Judge one command given as words (also one opened from a wrapper)."""
        if not words:
            raise AsksError("a wrapper without a command")
        if words[0].text is None:
            raise AsksError("a command whose name is not known")
        return run_call(Call(words[0].text, tuple(words[1:]), state, self, kept))

    def jump(self, state: State) -> None:
        """Note that a loop's body may end here."""
        if self.jumps:
            self.jumps[-1].append(state)

    def sequence(self, nodes: list[Node], state: State, *, kept: bool = False) -> Outcome:
        """Statements one after the other."""
        outcome, count = Outcome(state, state, certain=True), 0
        for node, following in zip_longest(nodes, nodes[1:]):
            if not node.is_named or node.type == "comment":
                continue
            before = outcome.after
            outcome = self.statement(node, before, kept)
            count += 1
            if following is not None and following.type == "&":
                outcome = Outcome.unchanged(before, outcome.output)
        return outcome if count == 1 else replace(outcome, output=UNKNOWN)

    def statement(self, node: Node, state: State, kept: bool) -> Outcome:
        """One statement of any kind."""
        match node.type:
            case "command":
                return self._command(node, state, kept)
            case "redirected_statement":
                return self._redirected(node, state, kept)
            case "pipeline":
                return self._pipeline(node, state, kept)
            case "list":
                return self._list(node, state, kept)
            case "subshell":
                return Outcome.unchanged(state, self.sequence(node.children, state, kept=kept).output)
            case "compound_statement" | "do_group":
                return self.sequence(node.children, state, kept=kept)
            case "negated_command":
                inner = self.sequence(node.children, state, kept=kept)
                return Outcome(inner.fail, inner.ok)
            case "if_statement" | "elif_clause":
                return self._if(node, state, kept)
            case "for_statement":
                return self._for(node, state, kept)
            case "while_statement":
                return self._while(node, state, kept)
            case "case_statement":
                return self._case(node, state, kept)
            case "test_command":
                return self._test(node, state)
            case "variable_assignment" | "variable_assignments" | "declaration_command":
                return self._assignments(node, state)
            case "file_redirect":
                redirects.read(self, [node], state)
                return Outcome.unchanged(state)
            case "function_definition":
                raise AsksError("defines a function")
        raise AsksError(f"{node.type.replace('_', ' ')} is not looked into")

    def expansion(self, state: State) -> Expansion:
        """How words expand in `state`."""
        return Expansion(self, state)

    def words(self, nodes: list[Node], state: State) -> list[Word]:
        """Expand sibling nodes: those that touch form one word."""
        return [
            word for group in redirects.touching(nodes) for word in words_of(group, self.source, self.expansion(state))
        ]

    def _command(self, node: Node, state: State, kept: bool, extra: list[Node] | None = None) -> Outcome:
        plain = [c for c in node.children if c.type not in (*_REDIRECTS, "variable_assignment", "comment")]
        there = [c for c in node.children if c.type in _REDIRECTS]
        separators = None
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self._assignment(child, state)
                pattern = self.table.variables.get(name)
                if name == "IFS" and value.text is not None:
                    separators = value.text
                elif pattern is None or value.text is None or not pattern.fullmatch(value.text):
                    raise AsksError(f"sets {name} for a command")
        flow = redirects.read(self, there, state)
        words = self.words(plain, state)
        words += self.words(flow.extra, state) + self.words(extra or [], state)
        if not words:
            raise AsksError("a command without a name")
        if words[0].text is None:
            raise AsksError("a command whose name is not known")
        inner = replace(state, stdin=flow.stdin if flow.stdin is not None else state.stdin)
        if separators is not None and words[0].text != "read":
            raise AsksError("sets IFS for a command")
        if separators:
            # What is cut off at a name's ends leaves another name.
            inner = replace(inner, stdin=UNKNOWN)
        call = Call(words[0].text, tuple(words[1:]), inner, self, kept or flow.kept)
        return self._with_stdin(run_call(call), state, flow.output_known)

    @staticmethod
    def _with_stdin(outcome: Outcome, state: State, output_known: bool = True) -> Outcome:
        """The outcome with the surrounding script's own standard input back in place."""
        return replace(
            outcome,
            ok=replace(outcome.ok, stdin=state.stdin),
            fail=replace(outcome.fail, stdin=state.stdin),
            output=outcome.output if output_known else UNKNOWN,
        )

    def _redirected(self, node: Node, state: State, kept: bool) -> Outcome:
        bodies = [c for c in node.named_children if c.type not in (*_REDIRECTS, "comment")]
        there = [c for c in node.named_children if c.type in _REDIRECTS]
        flow = redirects.read(self, there, state)
        inner = replace(state, stdin=flow.stdin if flow.stdin is not None else state.stdin)
        if len(bodies) > 1:
            raise AsksError("an unclear redirection")
        if not bodies:
            if flow.extra:
                raise AsksError("an unclear redirection")
            return Outcome.unchanged(state)
        if bodies[0].type == "command":
            outcome = self._command(bodies[0], inner, kept or flow.kept, flow.extra)
        elif flow.extra:
            raise AsksError("an unclear redirection")
        else:
            outcome = self.statement(bodies[0], inner, kept or flow.kept)
        outcome = self._with_stdin(outcome, state, flow.output_known)
        for later in flow.after:
            # What follows a heredoc on its line; the grammar hangs it below the heredoc.
            outcome = self.statement(later, replace(outcome.after, stdin=UNKNOWN), kept)
            outcome = self._with_stdin(outcome, state, output_known=False)
        return outcome

    def _pipeline(self, node: Node, state: State, kept: bool) -> Outcome:
        stages = [child for child in node.children if child.is_named and child.type != "comment"]
        stdin, output = state.stdin, UNKNOWN
        mixed = any(child.type == "|&" for child in node.children)
        for stage in stages:
            last = stage is stages[-1]
            output = self.statement(stage, replace(state, stdin=stdin), kept or not last).output
            stdin = UNKNOWN if mixed else output
        return Outcome.unchanged(state, output)

    def _list(self, node: Node, state: State, kept: bool) -> Outcome:
        parts = [child for child in node.children if child.type != "comment"]
        if len(parts) != 3 or parts[1].type not in ("&&", "||"):
            raise AsksError("an unclear list")
        left = self.statement(parts[0], state, kept)
        if parts[1].type == "&&":
            right = self.statement(parts[2], left.ok, kept)
            fail = right.fail if left.certain else left.fail.merged(right.fail)
            return Outcome(right.ok, fail, certain=left.certain and right.certain)
        right = self.statement(parts[2], left.fail, kept)
        if left.certain:
            return left
        return Outcome(left.ok.merged(right.ok), right.fail, certain=right.certain)

    def _if(self, node: Node, state: State, kept: bool) -> Outcome:
        then = next(index for index, child in enumerate(node.children) if child.type == "then")
        clauses = [child for child in node.children if child.type in ("elif_clause", "else_clause")]
        body = [child for child in node.children[then + 1 :] if child.type not in ("elif_clause", "else_clause")]
        condition = self.sequence(node.children[1:then], state)
        after = self.sequence(body, condition.ok, kept=kept).after
        otherwise = condition.fail if not condition.certain else condition.fail.merged(condition.ok)
        for clause in clauses:
            if clause.type == "elif_clause":
                inner = self._if(clause, otherwise, kept).after
                after, otherwise = after.merged(inner), otherwise.merged(inner)
            else:
                after = after.merged(self.sequence(clause.children, otherwise, kept=kept).after)
        return Outcome.unchanged(after.merged(otherwise))

    def _for(self, node: Node, state: State, kept: bool) -> Outcome:
        names = [child for child in node.named_children if child.type == "variable_name"]
        bodies = [child for child in node.named_children if child.type in ("do_group", "compound_statement")]
        if node.children[0].type != "for" or len(bodies) != 1 or not any(c.type == "in" for c in node.children):
            raise AsksError("an unusual loop")
        name = names[0].text
        if not self.table.plain_variables.fullmatch(name):
            raise AsksError(f"sets {name}")
        listed = [c for c in node.named_children if c not in (names[0], bodies[0]) and c.type != "comment"]
        possible = state
        for word in self.words(listed, state):
            state = state.with_variable(name, Value(word.text, word.names_from, word.number))
            state = self._body(bodies[0], state, kept)
            possible = possible.merged(state)
        return Outcome.unchanged(possible)

    def _body(self, body: Node, state: State, kept: bool) -> State:
        self.jumps.append([])
        after = self.statement(body, state, kept).after
        for early in self.jumps.pop():
            after = after.merged(replace(early, stdin=after.stdin))
        return after

    def _while(self, node: Node, state: State, kept: bool) -> Outcome:
        bodies = [child for child in node.children if child.type == "do_group"]
        if len(bodies) != 1:
            raise AsksError("an unusual loop")
        conditions = node.children[1 : node.children.index(bodies[0])]
        if conditions[0].text in ("true", ":", "false"):
            raise AsksError("a loop without an end")
        for _ in range(_MAX_PASSES):
            condition = self.sequence(conditions, state)
            entered = condition.ok if node.children[0].type == "while" else condition.fail
            merged = state.merged(self._body(bodies[0], entered, kept).merged(condition.after))
            if merged == state:
                return Outcome.unchanged(state)
            state = merged
        raise AsksError("a loop that does not settle")

    def _case(self, node: Node, state: State, kept: bool) -> Outcome:
        after = state
        for child in node.named_children:
            if child.type == "comment":
                continue
            if child.type != "case_item":
                single([child], self.source, self.expansion(state))
                continue
            close = next(index for index, part in enumerate(child.children) if part.type == ")")
            for pattern in child.children[:close]:
                if pattern.is_named:
                    single([pattern], self.source, self.expansion(state))
            if any(part.type in (";&", ";;&") for part in child.children):
                raise AsksError("an unusual case")
            after = after.merged(self.sequence(child.children[close + 1 :], state, kept=kept).after)
        return Outcome.unchanged(after)

    def _test(self, node: Node, state: State) -> Outcome:
        inner = node.children[1:-1]
        double = node.children[0].type == "[["
        tokens = [leaf for child in inner for leaf in redirects.test_tokens(child)]
        groups = redirects.touching(tokens)
        if double:
            values = [single(group, self.source, self.expansion(state)) for group in groups]
            words = [
                known(v.text) if v.text is not None else Word(None, names_from=v.names_from, number=v.number)
                for v in values
            ]
        else:
            words = [word for group in groups for word in words_of(group, self.source, self.expansion(state))]
        return run_call(Call("[[" if double else "test", tuple(words), state, self))

    def _assignments(self, node: Node, state: State) -> Outcome:
        export = node.type == "declaration_command"
        if export and len(node.children) == 1:
            raise AsksError(f"{node.children[0].type} prints the environment")
        if export and node.children[0].type != "export":
            raise AsksError(f"{node.children[0].type} is not looked into")
        nodes = [node] if node.type == "variable_assignment" else node.named_children
        for child in nodes:
            if child.type != "variable_assignment":
                raise AsksError("an unusual assignment")
            name, value = self._assignment(child, state)
            pattern = self.table.variables.get(name)
            listed = pattern is not None and value.text is not None and pattern.fullmatch(value.text)
            if not listed and (export or not self.table.plain_variables.fullmatch(name)):
                raise AsksError(f"sets {name}")
            state = state.with_variable(name, value)
        return Outcome(state, state)

    def _assignment(self, node: Node, state: State) -> tuple[str, Value]:
        name, operator, *value = node.children
        if name.type != "variable_name" or operator.type != "=" or (value and len(redirects.touching(value)) != 1):
            raise AsksError("an unusual assignment")
        if value and value[0].start_byte != operator.end_byte:
            raise AsksError("an unusual assignment")
        return name.text, single(value, self.source, self.expansion(state))
