"""1,500 random and 200 aimed corruptions: every one is noticed, or the numbers are the same to the bit."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from colours import ColourEncoder
from folders import fill
from kshot.bench.record import take
from kshot.bench.records import QUERIES, Records
from kshot.bench.study import parse_study
from kshot.data.store import Store
from kshot.encode.encoding import encode_pictures
from kshot.encode.sources import find_source
from kshot.encode.targets import Encoding
from kshot.errors import KshotError
from kshot.pictures.encoded import encode_files
from kshot.pictures.fit import fit_folder
from kshot.pictures.head import PictureHead
from picture_sets import write_pictures

pytestmark = pytest.mark.ci

RANDOM, AIMED = 1500, 200
STUDY = {
    "name": "small",
    "datasets": ["sim-satellite"],
    "backbones": ["simulated"],
    "tiers": ["dataset"],
    "shots": [1, 2],
    "seeds": [0, 1],
    "methods": ["zero_shot", "ncm"],
}


class World:
    """One of everything that kshot keeps on disk, and how each is read back."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.joined, self.loose = folder / "joined", folder / "loose"
        self.keys = fill(parse_study(STUDY, "here"), folder / "features", Records(self.joined)).keys()
        table = Records(self.joined).table(self.keys)
        for row in range(table.num_rows):
            Records(self.loose).add(take(table, [row]))
        write_pictures(folder / "set", 4)
        self.pictures = sorted((folder / "set").rglob("*.png"))
        fit_folder(folder / "set", encoder=ColourEncoder()).head.save(folder / "head")
        self.source = find_source(str(folder / "set"))
        self.store = Store(folder / "features")
        self.readers = {
            "loose records": (lambda: self._rows(self.loose), sorted(self.loose.glob("*.parquet"))),
            "joined records": (lambda: self._rows(self.joined), sorted(self.joined.glob("*.parquet"))),
            "saved queries": (self._query, sorted((self.joined / QUERIES).glob("*.parquet"))),
            "manifests": (self._manifests, sorted((folder / "features/sim-satellite").rglob("*.json"))),
            "features": (self._features, sorted((folder / "features/sim-satellite").rglob("*.safetensors"))),
            "picture cache": (self._cache, sorted((folder / "cache").rglob("*.safetensors"))),
            "heads": (self._head, [folder / "head"]),
            "kept shards": (self._shards, self._make_shards()),
        }

    def _rows(self, folder):
        """What is missing was noticed; what is there must be as it was."""
        rows = Records(folder).table(self.keys).to_pylist()
        return {row["key"]: json.dumps(row, default=bytes.hex, sort_keys=True) for row in rows}

    def _query(self):
        saved = Records(self.joined).saved("small")
        return {"study": saved.study.to_json(), "dropped": saved.dropped, "keys": saved.keys()}

    def _manifests(self):
        """By where they lie, as a run asks for them."""
        paths = sorted((self.folder / "features").rglob("*.json"))
        found = [self.store.manifest("sim-satellite", "simulated", path.stem) for path in paths]
        return {path.stem: (m.part, m.meaning(), m.sha256) for path, m in zip(paths, found, strict=True)}

    def _features(self):
        found = {}
        for part in ("pool", "test"):
            images = self.store.images("sim-satellite", "simulated", part)
            found[part] = (np.asarray(images.X).tobytes(), np.asarray(images.y).tobytes(), images.ids)
        text = self.store.text("sim-satellite", "simulated", "dataset")
        found["text"] = np.asarray(text.prototypes).tobytes()
        return found

    def _cache(self):
        return {
            number: getattr(one, "feature", np.zeros(0)).tobytes()
            for number, one in enumerate(encode_files(ColourEncoder(), self.pictures))
        }

    def _head(self):
        head = PictureHead.load(self.folder / "head")
        return {"p": head.probabilities(head.shots.X).tobytes(), "about": str(head.about), "t": head.thumbnails}

    def _make_shards(self):
        job = Encoding("set", "four", self.source, ColourEncoder(), threads=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kshot.encode.targets.shutil.rmtree", lambda *a, **k: None)
            encode_pictures([job], Store(self.folder / "encoded"))
        return sorted((self.folder / "encoded" / ".encoding").rglob("*.safetensors"))

    def _shards(self):
        """A run that continues from what is kept."""
        for path in (self.folder / "encoded" / "set").rglob("*.*"):
            path.unlink()
        self._make_shards()
        images = Store(self.folder / "encoded").images("set", "four", "all")
        return {"X": np.asarray(images.X).tobytes(), "y": images.y.tolist(), "ids": images.ids}


def randomly(content: bytes, rng: random.Random) -> bytes:
    """A flipped bit, another byte, a cut, an insertion, zeros, exchanged blocks, nothing at all."""
    place, other = (rng.randrange(len(content)) for _ in range(2))
    low, high = sorted((place, other))
    kind = rng.randrange(8)
    if kind < 3:
        return content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :]
    return [
        content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :],
        content[:place],
        content[:place] + rng.randbytes(rng.randrange(1, 9)) + content[place:],
        content[:low] + bytes(high - low) + content[high:],
        content[high:] + content[:low] + content[low:high],
    ][kind - 3]


def aimed(content: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Where it hurts: another file of the same kind, digits, names, the header, the end, the seal itself."""
    kind = rng.randrange(5)
    if kind == 0 and others:
        return rng.choice(others)
    if kind == 1 and (digits := [i for i, byte in enumerate(content) if 48 <= byte <= 57]):
        place = rng.choice(digits)
        return content[:place] + bytes([48 + (content[place] - 47) % 10]) + content[place + 1 :]
    if kind == 2:
        return content.replace(b"seal", b"sael").replace(b"kshot.sha256", b"kshot.sha512")
    if kind == 3:
        place = rng.randrange(max(1, len(content) - 200), len(content))
    else:
        place = rng.randrange(min(200, len(content)))
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def outcome(read, before) -> str:
    try:
        now = read()
    except KshotError:
        return "noticed"
    if now == before:
        return "harmless"
    fewer = now.keys() < before.keys() and all(before[key] == value for key, value in now.items())
    return "noticed" if fewer else "ACCEPTED"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_corruption_is_noticed_or_harmless(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))
    world = World(tmp_path)
    rng, counts = random.Random(7), Counter()
    kinds = list(world.readers)
    truth = {kind: world.readers[kind][0]() for kind in kinds}
    for number in range(RANDOM + AIMED):
        kind = kinds[number % len(kinds)]
        read, files = world.readers[kind]
        path = rng.choice(files)
        good = path.read_bytes()
        others = [other.read_bytes() for other in files if other != path]
        bad = good
        while bad == good:
            bad = randomly(good, rng) if number < RANDOM else aimed(good, others, rng)
        path.write_bytes(bad)
        found = outcome(read, truth[kind])
        counts[kind, found] += 1
        assert found != "ACCEPTED", (number, kind, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(good)
    for (kind, found), count in sorted(counts.items()):
        print(f"{kind:18} {found:10} {count}")
    assert counts.total() == RANDOM + AIMED
