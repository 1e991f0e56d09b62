"""The language as a page of docs, made from the code: `python -m harness.prereg.language.reference > docs/claim_language.md`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.prereg.language.columns import CONSTRAINTS, RUN_TABLES
from harness.prereg.language.functions import AGGREGATES, DECIDE, KNOWN, PAIRED, Function
from harness.prereg.language.paired import LEVEL
from harness.prereg.language.parser import MAX_CHARS, MAX_DEPTH, PAIR_BY
from harness.prereg.language.schema import Column, Type

_FORMS = (
    ("`runs`", "rows", "all rows of a table (of the prediction's cells)"),
    ("`runs[solved, n_ctx == 4096]`", "rows", "those for which every condition holds"),
    ("`hidden_passed`", "as the column", "a column's value in the row that is looked at; only inside a function"),
    ('`12`, `0.5`, `"finished"`, `True`, `False`', "number, text, flag", "values"),
    ("`==` `!=`", "flag", "between two values of one type"),
    ("`<` `<=` `>` `>=`", "flag", "between numbers; `1 <= x < 5` works"),
    ("`x in [4096, 8192]`, `x not in [...]`", "flag", "one of several values"),
    ("`and` `or` `not`", "flag", "between flags"),
    ("`+` `-` `*` `/`", "number", "between numbers; a division by nothing is undetermined"),
)


def render() -> str:
    """The whole page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The claim language"
    yield ""
    yield "<!-- Made by `python -m harness.prereg.language.reference`; change the code, not this page. -->"
    yield ""
    yield "A claim is one expression that is true, false, or undetermined. Every function takes rows first and then what to look"
    yield "at in each row. How to write one that can lose: predictions.md."
    yield ""
    yield from _table(("form", "gives", "meaning"), _FORMS)
    yield ""
    yield "## Functions"
    yield from _table(("function", "looks at", "gives", "meaning", "example"), [_function(f) for f in _functions()])
    yield ""
    yield f'`ratio` and `difference` pair rows by {" and ".join(PAIR_BY)} and take `decide="estimate"` or `decide="interval"`:'
    yield from (f"- `{name}`: {meaning}" for name, meaning in DECIDE.items())
    yield ""
    yield f"The interval is Student's at {LEVEL:.0%} over pairs (of the logarithms for `ratio`); one pair has none. Rows without a"
    yield "partner are named and left out."
    yield ""
    yield "## What is not known"
    yield "- A null stands for any value its column can have. `any` is true with one known true, `all` false with one known false,"
    yield "  `sum(...) >= 1` true with one known 1 in a column that can't be negative. Otherwise the claim is undetermined, and the"
    yield "  verdict names the nulls."
    yield "- A function that selects no row is undetermined, whatever it is compared with; so is a division by nothing."
    yield "- A run of the grid that was not made is one unknown row of `runs` and any number of unknown rows of the other tables."
    yield "- `and` and `or` are decided by one side where that is enough."
    yield "- Nothing is compared with null; `known(column)` asks whether there is a value."
    yield ""
    yield f"A claim has at most {MAX_CHARS} characters and is nested at most {MAX_DEPTH} deep. It is never run as Python."
    yield ""
    yield "## Columns"
    yield "The meaning and unit of each column stand with the tables (`analysis/tables/columns.py`)."
    for name, columns in RUN_TABLES.tables.items():
        yield ""
        yield f"### {name}"
        yield from _table(
            ("column", "type", "values"), [(f"`{c}`", str(s.type), _range(s)) for c, s in columns.items()]
        )
        if name in CONSTRAINTS:
            yield ""
            yield "Taken for granted in the search for a table that refutes a claim:"
            yield ", ".join(f"`{constraint}`" for constraint in CONSTRAINTS[name]) + "."


def _functions() -> list[Function]:
    return [*AGGREGATES.values(), *PAIRED.values(), KNOWN]


def _function(function: Function) -> tuple[str, ...]:
    takes = "any type" if function is KNOWN else str(function.takes)
    return (f"`{function.name}`", takes, str(function.gives), function.meaning, f"`{function.example}`")


def _range(column: Column) -> str:
    if column.type is Type.TEXT:
        return ", ".join(column.values) or "any text"
    if column.type is Type.FLAG:
        return "true, false"
    low = "" if math.isinf(column.low) else f"{column.low:g} "
    high = "" if math.isinf(column.high) else f" {column.high:g}"
    return f"{low}to{high}" if low and high else f"{low}and up" if low else "any"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]] | tuple[tuple[str, ...], ...]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(render(), end="")
