"""Other people's agents: any program that asks an OpenAI-compatible server, run inside the sandbox and recorded from outside.

`run_external` is the room's entrance, in the place of the agent room's `run_agent`. The program sees the copy, its own files and
one address; behind that address stands the recording proxy, which passes requests on and writes down what an own
agent would have told.
"""

from harness.external.program import check, program_identity
from harness.external.run import run_external

__all__ = ["check", "program_identity", "run_external"]
