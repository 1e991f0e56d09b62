"""For all rooms: no test goes by the clock, for the machine may be busy with something else."""

from hypothesis import settings

settings.register_profile("any_machine", deadline=None)
settings.load_profile("any_machine")
