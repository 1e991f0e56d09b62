"""Reading a shell command without running it: source, words, state, statements, and the judges of single commands."""
