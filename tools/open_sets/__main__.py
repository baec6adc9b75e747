"""Make a set of the open benchmark: fetch its packages, check the pictures against their hash, encode them.

    python -m tools.open_sets cifar10 --backbone ViT-B-16 --features features

The sets come with kshot as lite0 encoded them; this is how they were made, and how another encoder gets them.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from tools.open_sets import drawings, small
from tools.open_sets.openset import OpenSet

from kshot.cli.encode import parse_views
from kshot.data.store import Store
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.encoding import encode_jobs
from kshot.encode.prompts import tier_prompts
from kshot.encode.targets import Encoding
from kshot.errors import KshotError, unknown

SETS: dict[str, OpenSet] = {one.name: one for one in sorted((*drawings.SETS, *small.SETS), key=lambda one: one.name)}
TIERS = ("photo", "dataset", "ensemble")


def open_set(name: str) -> OpenSet:
    if name not in SETS:
        raise KshotError(unknown("open set", name, SETS, "List them with `kshot ls open`."))
    return SETS[name]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.open_sets", description="Make a set of the open benchmark.")
    parser.add_argument("name", help=", ".join(SETS))
    parser.add_argument("--backbone", default="lite0", help="encoder, as `kshot encode` takes it")
    parser.add_argument("--features", type=Path, default=Path("features"))
    parser.add_argument("--whole", action="store_true", help="every picture of the package, stored as NAME-whole")
    parser.add_argument("--views", type=int, default=0, help="augmented views of each pool picture")
    given = parser.parse_args()
    chosen = open_set(given.name)
    source = chosen.source(given.features / ".downloads", given.whole)
    proof = "all pictures of the package" if given.whole else f"pictures sha256 {chosen.verify(source)}"
    print(f"{chosen.name}: {len(source.rows)} pictures, {len(source.classes)} classes; {proof}")
    source = replace(source, origin=f"{source.origin}; {proof}")
    stored = f"{chosen.name}-whole" if given.whole else chosen.name
    encoder = load_encoder(given.backbone, None, "auto")
    job = Encoding(stored, stored_name(given.backbone), source, encoder, licence=chosen.entry.licence)
    prompts = tier_prompts(chosen.name, source, chosen.entry.template, TIERS, {})
    encode_jobs([job], Store(given.features), parse_views(given.views, "tip"), prompts)
    print(f"next: kshot features check {stored} --features {given.features}")


if __name__ == "__main__":
    main()
