"""A double of llama-server for tests and simulation: real HTTP, real window and prefix-cache accounting, scripted replies."""

from harness.serving.scripted.opening import open_scripted
from harness.serving.scripted.simulation_task import Shelf, make_simulation_task

__all__ = ["Shelf", "make_simulation_task", "open_scripted"]
