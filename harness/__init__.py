"""Called Shot: a reproducible experiment harness for local coding agents."""

__version__ = "0.1.0"
