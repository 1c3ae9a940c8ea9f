"""`python -m lakelog.cli` is the `lakelog` command."""

from lakelog.cli.main import main

main()
