"""docs/tables.md: what every column of every table means, generated from the columns themselves.

`python -m analysis.tables.describe > docs/tables.md` renews it.
"""

from __future__ import annotations

from analysis.tables.columns import TABLES

WHAT = {
    "runs": "One row per finished run, the values of its `result.json`.",
    "requests": "One row per chat request of the agent, in the order they were sent. Numbers come from the replies; `log_*` is "
    "the server log's row of the same request.",
    "clears": "One row per clear of old content. Of several clears before one request the last carries that request's numbers.",
    "commands": "One row per bash command of the model.",
    "tests": "One row per test and run.",
}
TYPES = {"string": "text", "Int64": "whole number", "Float64": "number", "boolean": "yes or no"}


def tables_page() -> str:
    """The page, in Markdown."""
    parts = [
        "# Tables",
        "",
        "`calledshot tables RUNS --table NAME` shows one, `--json` prints it, `--to FOLDER` writes all five as CSV and JSON, and",
        "as parquet where pyarrow is installed (`pip install 'called-shot[parquet]'`). In Python: `analysis.tables.runs(folder)`,",
        "`requests`, `clears`, `commands`, `tests` give DataFrames with these columns. Null means not known, never 0 for want of",
        "data. Terminal, report and plots leave out of an arm's name what all arms have in common; these tables keep it whole.",
        "",
        "Half runs are not counted. Nor is a second run of the same cell and seed below the same folder (`calledshot run … --runs",
        "runs/NAME/again`): the report says whether both runs went the same way, and else the first step at which they differ;",
        "`calledshot compare RUN RUN` does it for any two.",
    ]
    for name, columns in TABLES.items():
        parts += ["", f"## {name}", "", WHAT[name], "", "| column | type | meaning |", "|---|---|---|"]
        parts += [
            f"| `{column}` | {TYPES[c.dtype]} | {c.meaning.replace('|', chr(92) + '|')} |"
            for column, c in columns.items()
        ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(tables_page(), end="")
