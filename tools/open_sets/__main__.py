"""Build a set of the open benchmark: fetch its packages, check the pictures against their hash, encode them.

The features come with kshot; this makes them again, or with another encoder, or with augmented views.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from tools.open_sets import SETS

from kshot.data.store import Store
from kshot.data.views import RECIPES
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.encoding import encode_jobs
from kshot.encode.prompts import tier_prompts
from kshot.encode.targets import Encoding
from kshot.types import Views

TIERS = ("photo", "dataset", "ensemble")


def main() -> None:
    parser = argparse.ArgumentParser("python -m tools.open_sets", description=__doc__)
    parser.add_argument("name", choices=SETS)
    parser.add_argument("--backbone", default="lite0")
    parser.add_argument("--features", type=Path, default=Path("features"))
    parser.add_argument("--whole", action="store_true", help="every picture of the package, stored as NAME-whole")
    parser.add_argument("--views", type=int, default=0, help="augmented views of the pool")
    parser.add_argument("--view-recipe", choices=RECIPES, default="tip")
    asked = parser.parse_args()
    chosen = SETS[asked.name]
    source = chosen.source(asked.features / ".downloads", asked.whole)
    proof = "all pictures of the package" if asked.whole else f"pictures sha256 {chosen.verify(source)}"
    print(f"{asked.name}: {len(source.rows)} pictures, {len(source.classes)} classes; {proof}")
    source = replace(source, origin=f"{source.origin}; {proof}")
    stored, encoder = f"{asked.name}-whole" if asked.whole else asked.name, load_encoder(asked.backbone)
    job = Encoding(stored, stored_name(asked.backbone), source, encoder, licence=chosen.entry.licence)
    views = {Views(asked.view_recipe, asked.views): None} if asked.views else {}
    prompts = tier_prompts(asked.name, source, chosen.entry.template, TIERS, {})
    encode_jobs([job], Store(asked.features), views, prompts)
    print(f"next: kshot features check {job.dataset} --features {asked.features}")


if __name__ == "__main__":
    main()
