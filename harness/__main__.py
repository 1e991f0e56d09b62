"""python -m harness: the same as the command calledshot."""

from harness.cli.main import main

main()
