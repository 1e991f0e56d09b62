"""A place for runs, a small scenario, and a way to run one cell against the double."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.paths import shipped
from harness.sweep.app import prepare
from harness.sweep.compose import Place
from harness.sweep.plan import RunPlan

FIXES_CART = """
about: reads the module, repairs both bugs, runs the tests, says so
steps:
- calls: [{read_file: {path: cart.py}}]
- calls: [{edit_file: {path: cart.py, old: "sum(prices[1:])", new: "sum(prices)"}}]
- calls: [{edit_file: {path: cart.py, old: "price + price * percent", new: "price - price * percent"}}]
- calls: [{bash: {command: "python -m pytest -q"}}]
- say: Both bugs are fixed.
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(shipped("conf").parent, tmp_path / "runs")


@pytest.fixture
def fixes_cart(tmp_path: Path) -> Path:
    file = tmp_path / "fixes_cart.yaml"
    file.write_text(FIXES_CART)
    return file


@pytest.fixture
def scripted(place: Place, fixes_cart: Path) -> Callable[..., list[RunPlan]]:
    """Plans the cells of a request whose server is the double."""

    def plans(*overrides: str, scenario: Path = fixes_cart, multirun: bool = False) -> list[RunPlan]:
        asked = ["server=scripted", f"server.scenario={scenario}", "task=cart", *overrides]
        return prepare(place, asked, multirun).plans

    return plans
