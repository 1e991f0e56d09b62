"""Called shots: predictions as data, locked by commit before the runs, judged by the program.

    predictions = load_predictions(path)                         # experiments/<name>/predictions.yaml
    verdicts = judge(predictions, tables)                        # tables: name -> DataFrame
    register(study, cells, tasks)                                # writes registration.json
    report = check(study, runs=..., tables=..., summarise=...)   # verdicts with provenance

What judges tables needs pandas, which takes a second to load; a run needs only the facts for its manifest. So the names that
need it are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.prereg.cells import Cell
from harness.prereg.predictions import Prediction, PredictionError, Predictions, load_predictions
from harness.prereg.registration import Registration, RegistrationError, load_registration, registration_facts
from harness.prereg.study import Study, StudyError, find_study, study_facts

if TYPE_CHECKING:
    from harness.prereg.checking import Line, Report, check
    from harness.prereg.registering import Registered, register
    from harness.prereg.verdicts import Judged, Verdict, Verdicts, judge

_LATER = {
    "Line": "checking",
    "Report": "checking",
    "check": "checking",
    "Registered": "registering",
    "register": "registering",
    "Judged": "verdicts",
    "Verdict": "verdicts",
    "Verdicts": "verdicts",
    "judge": "verdicts",
}

__all__ = [
    "Cell",
    "Judged",
    "Line",
    "Prediction",
    "PredictionError",
    "Predictions",
    "Registered",
    "Registration",
    "RegistrationError",
    "Report",
    "Study",
    "StudyError",
    "Verdict",
    "Verdicts",
    "check",
    "find_study",
    "judge",
    "load_predictions",
    "load_registration",
    "register",
    "registration_facts",
    "study_facts",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
