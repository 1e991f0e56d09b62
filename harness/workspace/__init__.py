"""Tasks, fresh copies, the sandbox their commands run in, and grading."""
