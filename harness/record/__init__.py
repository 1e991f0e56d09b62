"""The run folder: the only thing a run writes, and all that analysis reads. Imports nothing else of the harness."""
