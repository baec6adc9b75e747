"""Zero-shot accuracy of the kept sentences minus that of "a photo of a {}." on the open sets: the table of
docs/sentences.md. `python tools/cupl_zero_shot.py` needs `kshot[lite]`."""

from pathlib import Path

import numpy as np

from kshot.data.catalog import datasets
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.encode.encoders import load_encoder
from kshot.encode.prompts import encode_tier, from_kept

BACKBONE = "lite0"


def rows() -> list[tuple[str, float, float]]:
    """Dataset, and accuracy in per cent with the template and with the sentences."""
    store, encoder = Store(Path("no features of one's own")), load_encoder(BACKBONE, device="cpu")
    found = []
    for name in (name for name, entry in datasets().items() if entry.pictures_sha256):
        stratum = load_stratum(store, name, BACKBONE)
        classes = store.manifest(name, BACKBONE, "text-photo").classes
        photo = load_prior(store, name, BACKBONE, "photo").text
        sentences = encode_tier(encoder.encode_prompts, from_kept(name, classes, None)).unit
        scores = ((stratum.test.X @ text.T).argmax(1) == stratum.test.y for text in (photo, sentences))
        found.append((name, *(100 * float(np.mean(right)) for right in scores)))
    return found


if __name__ == "__main__":
    print("| set | photo | cupl | cupl − photo |\n|---|---:|---:|---:|")
    table = rows()
    for name, photo, cupl in [*table, ("mean", *np.mean([row[1:] for row in table], axis=0))]:
        print(f"| {name} | {photo:.1f} | {cupl:.1f} | {cupl - photo:+.1f} |")
