"""What can be written, and what an author is told when it can't."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.prereg.language import RUN_TABLES, ClaimError, parse
from harness.prereg.language.functions import AGGREGATES, KNOWN, PAIRED
from harness.prereg.language.reference import render

DOCS = Path(__file__).parents[2] / "docs"


def fault(text: str) -> ClaimError:
    with pytest.raises(ClaimError) as caught:
        parse(text, RUN_TABLES)
    return caught.value


@pytest.mark.parametrize(
    ("claim", "marked", "said"),
    [
        ("count(runs, solvd) >= 2", "solvd", "runs has no column 'solvd'; did you mean 'solved'? (columns: run_id"),
        ("count(rns, solved) >= 2", "rns", "there is no table 'rns'; did you mean 'runs'? (tables: runs, requests"),
        ("cuont(runs, solved) >= 2", "cuont", "there is no function 'cuont'; did you mean 'count'?"),
        ('any(runs, ended_how == "finshed")', '"finshed"', "ended_how is never 'finshed'; did you mean 'finished'?"),
        ("max(runs, solved) < 2", "solved", "what max looks at must be a number, this is a flag"),
        ("any(runs, prompts)", "prompts", "what any looks at must be a flag, this is a number"),
        ("count(runs, solved)", "count(runs, solved)", "a claim is true or false, this is a number"),
        ("any(runs[prompts], solved)", "prompts", "a condition of a selection must be a flag"),
        ('any(runs, prompts == "2")', '"2"', "a number can't be compared with a text"),
        ('any(runs, agent < "x")', '"x"', "a text has no order"),
        ("any(runs, solved and prompts)", "prompts", "a side of `and` must be a flag"),
        ("any(runs, -solved == 1)", "solved", "what follows `-` must be a number"),
        ("any(runs, solved == null)", "null", "known(column)"),
        ("any(runs, solved is None)", "solved is None", "`is` is not part"),
        ("any(runs, prompts ** 2 > 1)", "prompts ** 2", "BinOp is not part of the claim language"),
        ("any(runs, prompts in 3)", "3", "`in` takes a list of values"),
        ("runs", "runs", "a table stands inside a function"),
        ("solved", "solved", "columns are named inside one, such as count(runs, solved)"),
        ("runs[solved]", "runs[solved]", "a selection of rows stands inside a function"),
        ("any(runs, any(runs, solved))", "any(runs, solved)", "can't stand inside a condition on one row"),
        ("known(solved)", "known(solved)", "stands inside a function such as count"),
        ("any(runs)", "any(runs)", "any takes rows and a flag"),
        ("any(runs, solved, key=1)", "any(runs, solved, key=1)", "any takes rows and a flag"),
        ("any(*runs, solved)", "any(*runs, solved)", "any takes rows and a flag"),
        ("any(solved, runs)", "solved", "there is no table 'solved'"),
        ("any(runs.solved, solved)", "runs.solved", "here stands a table or a selection"),
        ("any(runs, solved.real)", "solved.real", "Attribute is not part of the claim language"),
        ("any(runs[()], solved)", "runs[()]", "a selection needs a condition"),
        ("ratio(runs, requests, seconds) < 1", "requests", "must be of one table"),
        ('ratio(runs, runs, seconds, decide="mood") < 1', 'decide="mood"', 'decide="estimate" or decide="interval"'),
        ("any(runs, prompts > 1e999)", "1e999", "too large"),
        ("any(runs, prompts > 1j)", "1j", "neither a number, a text nor True or False"),
        ("__import__('os').system('true') == 0", "__import__('os').system", "only the functions of the claim language"),
        ("(lambda: 1)() == 1", "lambda: 1", "only the functions of the claim language"),
        ("[x for x in runs] == 1", "[x for x in runs]", "ListComp is not part"),
        ('f"{1}" == "1"', 'f"{1}"', "JoinedStr is not part"),
        ("any(runs, solved) and", "", "can't be read"),
        ("", "", "the claim is empty"),
        ("any(runs, solved" + " and solved" * 500 + ")", "", "longer than 4000 characters"),
        ("not " * 100 + "any(runs, solved)", "", "nested more than 60 deep"),
        ("(" * 500 + "1" + ")" * 500, "", "can't be read"),
        ('"ä" == "ä" and any(runs, sölved)', "sölved", "runs has no column"),
    ],
)  # fmt: skip
def test_names_what_is_wrong_and_where(claim: str, marked: str, said: str) -> None:
    error = fault(claim)
    assert said in str(error)
    assert "\n" not in str(error)
    if marked:
        assert error.claim[error.span.start : error.span.end] == marked
        line, caret = error.caret().split("\n")
        assert line[caret.index("^") : caret.rindex("^") + 1] == marked
        assert str(error).startswith(f"column {error.span.start + 1}: ")


@given(st.text(max_size=60))
def test_any_text_is_a_claim_or_a_claim_error(text: str) -> None:
    with contextlib.suppress(ClaimError):
        parse(text, RUN_TABLES)


@given(st.text(alphabet="runs[]().,=<>\"'abcsolved 0123+-*/andot\n", max_size=40))
def test_near_claims_are_claims_or_claim_errors(text: str) -> None:
    with contextlib.suppress(ClaimError):
        parse(f"any(runs, {text})", RUN_TABLES)


def test_lines_of_a_yaml_block_are_one_claim() -> None:
    assert parse("any(runs,\n  solved)\nand none(runs, false_finish)\n", RUN_TABLES).text.count("\n") == 0


@pytest.mark.parametrize("function", [*AGGREGATES.values(), *PAIRED.values(), KNOWN], ids=lambda f: f.name)
def test_every_example_of_the_docs_parses(function: object) -> None:
    assert parse(function.example, RUN_TABLES)


def test_the_docs_are_current() -> None:
    page = DOCS / "claim_language.md"
    assert page.read_text(encoding="utf-8") == render(), f"python -m harness.prereg.language.reference > {page}"
