"""`python -m fyke`: the command line."""

from fyke.cli import main

main()
