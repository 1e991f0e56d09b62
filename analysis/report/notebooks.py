"""Executes the notebooks (percent format) headless and gives them as HTML that needs nothing from outside."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NAMES = ("prompt_cache", "truncation", "hidden_tests", "approvals", "predictions")
RUNS, VERDICTS = "CALLEDSHOT_RUNS", "CALLEDSHOT_VERDICTS"
TIMEOUT_S = 300


class NotebookError(ValueError):
    """A notebook that can't be run; one line with its name and the error of the cell."""


def execute(
    names: Sequence[str], runs: Path, verdicts: Sequence[Mapping[str, Any]] = ()
) -> dict[str, nbformat.NotebookNode]:
    """Runs notebooks over a runs folder, one after the other in one fresh kernel, and returns them with their outputs.

    One kernel, because starting it and importing pandas takes longer than the notebooks; its names are wiped in between.

    Raises:
        NotebookError: no such notebook, or a cell failed.
    """
    notebooks = {name: _read(name) for name in names}
    kernel = AsyncKernelManager(kernel_name="python3")
    with _environment(runs, verdicts):
        try:
            for name, notebook in notebooks.items():
                _run(name, notebook, kernel)
        finally:
            if kernel.has_kernel:
                asyncio.run(kernel.shutdown_kernel(now=True))
    return notebooks


def _run(name: str, notebook: nbformat.NotebookNode, kernel: AsyncKernelManager) -> None:
    wipe = nbformat.v4.new_code_cell("%reset -f")
    notebook.cells.append(wipe)
    place = {"metadata": {"path": str(FOLDER)}}
    client = NotebookClient(notebook, km=kernel, timeout=TIMEOUT_S, startup_timeout=TIMEOUT_S, resources=place)
    # The kernel warns that its loopback sockets are not encrypted; they are signed, and the notebooks are our own.
    client.extra_arguments = ["--IPKernelApp.log_level=40"]
    try:
        client.execute()
    except CellExecutionError as e:
        raise NotebookError(f"{name}: {e.ename}: {e.evalue}") from e
    except (CellTimeoutError, DeadKernelError, RuntimeError) as e:
        raise NotebookError(f"{name}: {' '.join(str(e).split())[:300]}") from e
    notebook.cells.remove(wipe)


def _read(name: str) -> nbformat.NotebookNode:
    path = FOLDER / f"{name}.py"
    if not path.is_file():
        raise NotebookError(f"{name}: no such notebook; known: {', '.join(NAMES)}")
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook


def to_html(notebook: nbformat.NotebookNode) -> str:
    """The body of an executed notebook: prose, code and outputs, no scripts, no addresses."""
    exporter = HTMLExporter(template_name="basic")
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    exporter.exclude_anchor_links = True
    body, _ = exporter.from_notebook_node(notebook)
    return str(body)


@contextmanager
def _environment(runs: Path, verdicts: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """The kernel inherits the environment: where the runs are, where the verdicts are, no display."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump([dict(v) for v in verdicts], file, default=str)
        file.flush()
        wanted = {
            RUNS: str(Path(runs).resolve()),
            VERDICTS: file.name,
            "MPLBACKEND": "Agg",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        before = {k: os.environ.get(k) for k in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value
