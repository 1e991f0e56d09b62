"""Every benchmark starts the way the Makefile and its own first lines say; what it measures is never a test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = sorted(p.stem for p in (ROOT / "tests/bench").glob("*.py"))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_starts(name):
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{name}", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--help" in done.stdout
    assert f"python -m tests.bench.{name}``" in (ROOT / "tests/bench" / f"{name}.py").read_text().replace("\n", " ")


def test_make_bench_starts_them_so():
    recipe = re.search(r"^bench:.*\n\t(.*)", (ROOT / "Makefile").read_text(), re.M)[1].replace("$$", "$")
    recipe = recipe.replace("$(BIN)/python", "echo")
    done = subprocess.run(["sh", "-c", recipe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"-m tests.bench.{name}" for name in BENCHMARKS]
