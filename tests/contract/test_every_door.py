"""Every head through every door: the same features and shots give the same answers, picture by picture.

The encoder's constants are not CLIP's 100 and 10, so a door that forgets them gives other answers.
"""

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import sklearn
import torch
from PIL import Image
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import kshot
from kshot.bench.study import Cell, parse_study
from kshot.data.store import Store
from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import PromptFeatures
from kshot.errors import InputError
from kshot.methods import registry
from kshot.methods.parameters import encoder_parameters
from kshot.pictures.export import export_onnx
from kshot.stats.answers import RELATIVE_ERROR
from kshot.types import FREE_EVIDENCE
from problems import HEADS

CONSTANTS = {"logit_scale": 25.0, "anchor_scale": 4.0}
CLASSES = ("ant", "bee", "cat", "dog", "eel")
CELL = Cell("animals", "known", "photo", 4, 0)
DIMENSION, POOL, TEST = 16, 12, 8
NAMES = registry.names()


class KnownPictures(kshot.Encoder):
    """An encoder that knows each picture by its red: features that are already there."""

    dim, logit_bias, backbone = DIMENSION, None, "known-pictures"
    logit_scale = CONSTANTS["logit_scale"]
    preprocessing = Preprocessing(8, (0.0,) * 3, (1.0,) * 3)

    def __init__(self, rows, prototypes):
        self.rows, self.prototypes = rows, prototypes

    def encode_images(self, batch):
        return self.rows[np.round(255 * np.stack(batch)[:, 0].mean(axis=(1, 2))).astype(int)]

    def encode_prompts(self, prompts):
        rows = [next(c for c, name in enumerate(CLASSES) if name in prompt) for prompt in prompts]
        norms = np.full(len(rows), CONSTANTS["anchor_scale"], np.float32)
        return PromptFeatures(self.prototypes[rows], norms)

    def facts(self):
        return {"name": "known pictures"}


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


# Enough for a head that another iteration would change.
FEW = {"cross_modal_lp": {"iterations": 200}, "cross_modal_lp_wiseft": {"iterations": 200}}


@pytest.fixture(scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        for name, params in FEW.items():
            known = registry.BUILTIN[name]
            patch.setitem(registry.BUILTIN, name, replace(known, params=known.params | params))
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory, quick):
    """Stored features, their only cell's episode, one study that holds every head, and its records."""
    folder = tmp_path_factory.mktemp("doors")
    rng = np.random.default_rng(0)
    # Rows of four halves have length 1 without rounding, however often a door scales them.
    text = np.zeros((len(CLASSES), DIMENSION), np.float32)
    for row in text:
        row[rng.choice(DIMENSION, 4, replace=False)] = rng.choice([-0.5, 0.5], 4)
    means = text + unit(rng.normal(size=text.shape))
    store, about = Store(folder / "features"), {"logit_scale": CONSTANTS["logit_scale"]}
    for part, each in (("pool", POOL), ("test", TEST)):
        y = np.tile(np.arange(len(CLASSES)), each)
        X = unit(means[y] + 1.2 * unit(rng.normal(size=(len(y), DIMENSION))))
        ids = [f"{part}/{row}" for row in range(len(y))]
        store.write_images(CELL.dataset, CELL.backbone, part, X, y, ids, CLASSES, **about)
    norms = np.full(len(CLASSES), CONSTANTS["anchor_scale"], np.float32)
    store.write_text(CELL.dataset, CELL.backbone, CELL.tier, text, norms, CLASSES, **about)
    study = parse_study(
        {
            "name": "doors",
            "datasets": [CELL.dataset],
            "backbones": [CELL.backbone],
            "tiers": [CELL.tier],
            "shots": [CELL.shots],
            "seeds": [CELL.seed],
            "methods": NAMES,
        },
        "here",
    )
    stored = kshot.load_features(CELL.dataset, CELL.backbone, features=folder / "features")
    episode = stored.episode(CELL.shots, CELL.seed, CELL.tier)
    made = SimpleNamespace(folder=folder, study=study, stored=stored, episode=episode, queries=stored.test.X)
    made.truth, made.features = stored.test.y, folder / "features"
    made.by_hand = cache(lambda name: fitted_by_hand(made, name))
    made.records = cache(lambda door: STUDIES[door](made))
    made.encoder, made.photos = write_photos(made)
    made.pictures = cache(lambda name: kshot.fit_pictures(folder / "photos", encoder=made.encoder, method=name))
    return made


def fitted_by_hand(world, name):
    """The reference: constructor with the constants, and `fit` with arrays."""
    method = registry.create(name)
    own = {key: value for key, value in CONSTANTS.items() if key in encoder_parameters(type(method))}
    return method.set_params(**own).fit(**evidence(world, method))


def evidence(world, method):
    arguments = world.episode.reveal(method.info.sees).fit_arguments()
    return {name: value for name, value in arguments.items() if name != "constants"}


def answers(results, name):
    """What the record of a method keeps of every test picture."""
    rows, caught = results.where(method=name).records, []
    results.cache.answers(rows, {"caught": lambda kept: caught.append(kept) or 0.0})
    (kept,) = caught
    return kept


def ran(world, study=None, **options):
    return kshot.run(study or world.study, features=world.features, workers=1, **options)


def ran_on_given_shots(world):
    """The drawn shots by their row numbers, in another order."""
    support = world.episode.reveal(frozenset({"support"})).support
    rows = [int(np.flatnonzero((row == world.stored.pool.X).all(axis=1))[0]) for row in support.X]
    by_class = [
        row for label in reversed(range(len(CLASSES))) for row, y in zip(rows, support.y, strict=True) if y == label
    ]
    path = world.folder / "supports.json"
    path.write_text(json.dumps({CELL.dataset: {str(CELL.shots): {str(CELL.seed): by_class}}}))
    return ran(world, records=world.folder / "given", supports=path)


def judged(world):
    judgement = kshot.judge(NAMES, world.study, records=world.folder / "judged", features=world.features, workers=1)
    assert len(judgement.tables) == len(NAMES)
    return judgement.results


def compared(world, heads):
    """Features that are in memory only, with the ids of the stored ones."""
    stored = world.stored
    features = kshot.Features.from_arrays(
        CELL.dataset,
        pool=(stored.pool.X, np.array(CLASSES)[stored.pool.y]),
        test=(stored.test.X, np.array(CLASSES)[stored.test.y]),
        text={CELL.tier: stored.text[CELL.tier]},
        classes=CLASSES,
        ids=(stored.stratum.pool_ids, stored.stratum.test_ids),
        backbone=CELL.backbone,
        constants=CONSTANTS,
    )
    with pytest.MonkeyPatch.context() as patch:
        # Every head is computed again three times to find leaks; other tests do that.
        patch.setattr("kshot.runs.check_own", lambda *arguments: {})
        return kshot.compare(heads, features, shots=[CELL.shots], seeds=1, workers=1, least_left=0)


STUDIES = {
    "run": lambda world: ran(world, records=world.folder / "run"),
    "supports": ran_on_given_shots,
    "compare": lambda world: compared(world, {name: registry.create(name) for name in NAMES}),
    "session": lambda world: compared(world, {name: of_this_session(name) for name in NAMES}),
    "judge": judged,
}


def of_this_session(name):
    """The head as an object of a class that no process can import."""
    known = registry.create(name)
    cls = type(known)
    return type(f"My{cls.__name__}", (cls,), {"__module__": "__main__"})(**known.get_params(deep=False))


def write_photos(world):
    """The shots as pictures in folders, in the order of the draw; an encoder that knows them and the test pictures, and
    all of these pictures."""
    shots = world.episode.reveal(frozenset({"support"})).support
    text = world.episode.reveal(frozenset({"text"})).text
    rows = np.concatenate([shots.X, world.queries])
    photos = [Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(len(rows))]
    for number, label in enumerate(shots.y):
        path = world.folder / "photos" / CLASSES[label] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        photos[number].save(path)
    return KnownPictures(rows, text), photos


def same(world, name, predicted, probabilities):
    head = world.by_hand(name)
    assert np.array_equal(predicted, head.predict(world.queries))
    np.testing.assert_allclose(probabilities, head.predict_proba(world.queries), atol=1e-5)


def by_episode(world, name, tmp_path):
    head = world.episode.fit(registry.create(name))
    same(world, name, head.predict(world.queries), head.predict_proba(world.queries))


def by_records(door):
    return lambda world, name, tmp_path: recorded(world, name, world.records(door))


def recorded(world, name, records):
    """A record keeps who was right, the class that was said, and how sure of it and of the truth the head was."""
    head, kept = world.by_hand(name), answers(records, name)
    predicted, probabilities = head.predict(world.queries), head.predict_proba(world.queries).astype(float)
    rows = np.arange(len(predicted))
    (row,) = [row for row in records.to_arrow().to_pylist() if row["method"] == name]
    hits = np.unpackbits(np.frombuffer(row["hits"], np.uint8), count=row["n_test"]).astype(bool)
    assert np.array_equal(hits, predicted == world.truth)
    assert np.array_equal(kept.predicted, predicted)
    np.testing.assert_allclose(
        kept.true_surprise,
        np.minimum(100, -np.log(probabilities[rows, world.truth])),
        rtol=2 * RELATIVE_ERROR,
        atol=1e-5,
    )


def by_pictures(world, name, tmp_path):
    """A picture head has a temperature of its own beside the head's probabilities."""
    head = world.pictures(name)
    same(world, name, head.head.predict(world.queries), head.head.predict_proba(world.queries))
    assert np.array_equal(head.probabilities(world.queries).argmax(axis=1), world.by_hand(name).predict(world.queries))


def by_file(world, name, tmp_path):
    kshot.save_head(world.by_hand(name), tmp_path / "head.safetensors")
    head = kshot.load_head(tmp_path / "head.safetensors")
    same(world, name, head.predict(world.queries), head.predict_proba(world.queries))


def by_arrays(world, name, tmp_path):
    method = registry.create(name)
    head = method.fit(**evidence(world, method), constants=CONSTANTS)
    same(world, name, head.predict(world.queries), head.predict_proba(world.queries))


def by_pipeline(world, name, tmp_path):
    method = registry.create(name)
    shots = world.episode.reveal(frozenset({"support"})).support
    routed = {key: value for key, value in evidence(world, method).items() if key not in ("X", "y")}
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(FunctionTransformer(), method)
        pipeline.fit(shots.X, shots.y, **routed, constants=CONSTANTS)
        same(world, name, pipeline.predict(world.queries), pipeline.predict_proba(world.queries))


def by_encoding(world, name, tmp_path):
    """Pictures in a scikit-learn pipeline; text and constants are asked of its encoder."""
    method, step = registry.create(name), kshot.EncodePictures(world.encoder)
    shots = world.episode.reveal(frozenset({"support"})).support
    routed = {key: value for key, value in evidence(world, method).items() if key not in ("X", "y")}
    if "text" in routed:
        routed["text"] = step.text_of(CLASSES)
    about = {f"{type(method).__name__.lower()}__{key}": value for key, value in routed.items()}
    about[f"{type(method).__name__.lower()}__constants"] = step.constants_of(CLASSES)
    pipeline = make_pipeline(step, method).fit(world.photos[: len(shots.y)], shots.y, **about)
    asked = world.photos[len(shots.y) :]
    same(world, name, pipeline.predict(asked), pipeline.predict_proba(asked))


def by_torch(world, name, tmp_path):
    for head in [world.by_hand(name)] + ([] if closed(name, "pictures") else [world.pictures(name)]):
        scores = head.to_torch()(torch.from_numpy(world.queries.copy()))
        said = torch.softmax(scores, dim=1).detach().numpy()
        wanted = head.predict_proba if head is world.by_hand(name) else head.probabilities
        np.testing.assert_allclose(said, wanted(world.queries), atol=1e-5)
        assert np.array_equal(said.argmax(axis=1), world.by_hand(name).predict(world.queries))


def by_graph(world, name, tmp_path):
    head = world.pictures(name)
    export_onnx(head, tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx", providers=["CPUExecutionProvider"])
    (given,) = session.run(None, {"features": world.queries})
    np.testing.assert_allclose(given, head.probabilities(world.queries), atol=1e-5)
    assert np.array_equal(given.argmax(axis=1), world.by_hand(name).predict(world.queries))


DOORS = {
    "fit": by_arrays,
    "episode": by_episode,
    **{door: by_records(door) for door in STUDIES},
    "pictures": by_pictures,
    "file": by_file,
    "pipeline": by_pipeline,
    "encoding": by_encoding,
    "torch": by_torch,
    "graph": by_graph,
}


def closed(name, door):
    """Why a head cannot go through a door; empty where it can."""
    info = registry.create(name).info
    if door in ("pictures", "graph") and not info.sees <= FREE_EVIDENCE:
        return "looks at data that you do not have"
    if door in ("torch", "graph") and "queries" in info.sees:
        return "has no form in torch"
    return ""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_answers_through_every_door(world, name, door, tmp_path):
    if reason := closed(name, door):
        with pytest.raises(InputError, match=reason):
            DOORS[door](world, name, tmp_path)
    else:
        DOORS[door](world, name, tmp_path)


def test_every_public_head_is_among_them():
    assert HEADS.keys() <= {type(registry.create(name)).__name__ for name in NAMES}
