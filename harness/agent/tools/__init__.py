"""The tools a model can call."""
