"""The command `calledshot`: the rooms' own commands under one roof, and one way to say what is wrong.

Exit 0: the command did its work. 1: a check does not hold, or runs failed. 2: a wrong request, one line on stderr.
130: interrupted.
"""

from __future__ import annotations

import os
import sys

import typer

from analysis.replay.cli import replay_command
from analysis.server_log.cli import log_app
from harness.agent.approval.cli import rules_app
from harness.cli.compare import compare_command
from harness.cli.doctor import doctor_command
from harness.cli.export import export_app
from harness.cli.gates import gates_command
from harness.cli.new import new_app
from harness.cli.report import report_command
from harness.cli.run import run_command
from harness.cli.show import show_command, status_command
from harness.cli.tables import tables_command
from harness.models.cli import models_app
from harness.prereg.cli import check_command, power_command, register_command
from harness.workspace.cli import tasks_app

INTERRUPTED = 130

app = typer.Typer(
    name="calledshot",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reproducible experiments with local coding agents.",
)
app.command("run", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(run_command)
app.command("show")(show_command)
app.command("status")(status_command)
app.command("register")(register_command)
app.command("check")(check_command)
app.command("report")(report_command)
app.command("power")(power_command)
app.command("tables")(tables_command)
app.command("compare")(compare_command)
app.command("replay")(replay_command)
app.command("gates")(gates_command)
app.command("doctor")(doctor_command)
app.add_typer(new_app, name="new")
app.add_typer(models_app, name="models")
app.add_typer(log_app, name="log")
app.add_typer(export_app, name="export")
app.add_typer(rules_app, name="rules")
app.add_typer(tasks_app, name="tasks")


def main() -> None:
    """Entry point. Every error of ours is a ValueError with one line; its `exit_code` (2 unless it says otherwise) is kept."""
    try:
        # Without its standalone mode typer hands an exit code back instead of leaving with it.
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except typer.TyperException as e:
        print(f"calledshot: {e.format_message()} (see calledshot --help)", file=sys.stderr)
        code = 2
    except ValueError as e:
        print(f"calledshot: {e}", file=sys.stderr)
        code = getattr(e, "exit_code", 2)
    except BrokenPipeError:
        # The reader of our output has gone (`calledshot show RUN | head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as e:
        print(f"calledshot: {_in_words(e)}", file=sys.stderr)
        # What may not be read or written was named by the caller; a full disk was not.
        code = 2 if isinstance(e, PermissionError) else 1
    if code == INTERRUPTED:
        print("interrupted; what is finished stays, run the same command to go on", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _in_words(error: OSError) -> str:
    """A full disk, a folder that may not be written, a name that is too long: which file, and what the system says."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
