"""The name of the one submission that a change adds: reads `git diff --no-renames -z --name-status`, refuses more."""

import re
import sys

ADDED = re.compile(r"submissions/([A-Za-z0-9][A-Za-z0-9._+-]*)/.+")


def added_submission(listing: str) -> str:
    """The folder's name, or a sentence as ValueError."""
    parts = listing.split("\0")[:-1]
    names = set()
    for status, path in zip(parts[::2], parts[1::2], strict=True):
        found = ADDED.fullmatch(path)
        if status != "A" or not found or ".." in found[1]:
            raise ValueError(f"{path!a} is changed; add one folder in submissions/ and change nothing else")
        names.add(found[1])
    if len(names) != 1:
        raise ValueError(f"{len(names)} folders are added; add one folder in submissions/")
    return names.pop()


if __name__ == "__main__":
    try:
        print(added_submission(sys.stdin.read()))
    except ValueError as error:
        sys.exit(str(error))
