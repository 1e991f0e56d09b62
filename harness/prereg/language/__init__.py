"""The claim language: a small, safe expression language over the tables of an experiment.

`parse(text, schema)` gives a typed `Claim` or raises ClaimError with the place; `evaluate(claim, tables)` gives a truth of
three values with the numbers that decided it. docs/claim_language.md is generated from this package.
"""

from harness.prereg.language.columns import PUBLISHED_TABLES, RUN_TABLES
from harness.prereg.language.errors import ClaimError, Span
from harness.prereg.language.evaluate import Finding, Result, evaluate, evaluate_row
from harness.prereg.language.parser import parse, parse_condition
from harness.prereg.language.rows import Row, Table, Tables
from harness.prereg.language.schema import Column, Schema, Type
from harness.prereg.language.tree import Claim

__all__ = [
    "PUBLISHED_TABLES",
    "RUN_TABLES",
    "Claim",
    "ClaimError",
    "Column",
    "Finding",
    "Result",
    "Row",
    "Schema",
    "Span",
    "Table",
    "Tables",
    "Type",
    "evaluate",
    "evaluate_row",
    "parse",
    "parse_condition",
]
