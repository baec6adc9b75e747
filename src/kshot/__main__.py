"""`python -m kshot` is the command `kshot`."""

from kshot.cli.main import main

main()
