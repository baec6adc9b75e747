"""`python -m kshot` is the command `kshot`."""

import sys

# Python puts the current folder before all libraries; a file there must not take the place of one.
if not sys.flags.safe_path:
    del sys.path[0]

from kshot.cli.main import main

main()
