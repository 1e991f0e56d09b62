"""Called shots: predictions as data, locked by commit before the runs, judged by the program.

predictions = load_predictions(path)                  # experiments/<name>/predictions.yaml
verdicts = judge(predictions, tables)                 # tables: name -> DataFrame
register(study, cells, tasks)                         # writes registration.json
report = check(study, runs=..., tables=..., summarise=...)   # verdicts with provenance
"""

from harness.prereg.cells import Cell
from harness.prereg.check import Line, Report, check
from harness.prereg.predictions import Prediction, PredictionError, Predictions, load_predictions
from harness.prereg.provenance import Provenance, Standing, standing_of_run
from harness.prereg.register import Registered, register
from harness.prereg.registration import Registration, RegistrationError, load_registration, registration_facts
from harness.prereg.study import Study, StudyError, find_study, study_facts
from harness.prereg.verdicts import Judged, Verdict, Verdicts, judge

__all__ = [
    "Cell",
    "Judged",
    "Line",
    "Prediction",
    "PredictionError",
    "Predictions",
    "Provenance",
    "Registered",
    "Registration",
    "RegistrationError",
    "Report",
    "Standing",
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
    "standing_of_run",
    "study_facts",
]
