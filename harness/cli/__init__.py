"""The command line: `calledshot`. Results go to stdout, progress and warnings to stderr."""
