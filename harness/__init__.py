"""Called Shot: a reproducible experiment harness for local coding agents."""
