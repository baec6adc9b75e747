"""Does an exported graph answer like `kshot predict`? `python -m tools.compare_export` says by how much it differs.

A head is fitted on the sample drawings and exported with its encoder. Then random stamps of Tux Paint, which come as
a Debian package, and the new drawings go through both: onnxruntime on one side, Pillow and torch on the other.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

from kshot.encode.encoders import load_encoder
from kshot.encode.open.fetch import debian_package
from kshot.encode.pictures import decode
from kshot.pictures.export import export_onnx
from kshot.pictures.fit import fit_folder
from kshot.pictures.photos import copy_sample
from kshot.pictures.predict import predict_files

MARK = 1e-3


def compare(backbone: str, weights: Path | None, method: str, count: int, downloads: Path, folder: Path) -> str:
    copy_sample(folder / "drawings")
    encoder = load_encoder(backbone, weights)
    head = fit_folder(folder / "drawings/photos", backbone=backbone, encoder=encoder, method=method).head
    export_onnx(head, folder / "alone.onnx", encoder)
    session = onnxruntime.InferenceSession(folder / "alone.onnx", providers=["CPUExecutionProvider"])
    stamps = sorted(debian_package("tuxpaint-stamps-default", downloads).rglob("*.png"))
    chosen = np.random.default_rng(0).choice(len(stamps), count, replace=False)
    pictures = [*(folder / "drawings/new").iterdir(), *(stamps[row] for row in chosen)]
    lines, worst, flipped, classes = [], [], 0, head.about.classes
    said = predict_files(head, pictures, top=len(classes), threshold=0, encoder=encoder)
    for path, one in zip(pictures, said, strict=True):
        picture = decode(path, path.name, as_seen=True)
        theirs = np.asarray(session.run(None, {"picture": np.asarray(picture)})[0])[0]
        ours = {guess.name: guess.probability for guess in one.top}
        worst.append(max(abs(theirs[row] - ours[name]) for row, name in enumerate(classes)))
        flipped += classes[theirs.argmax()] != one.answer
        if worst[-1] > MARK:
            lines.append(f"{path.name}, {picture.width} × {picture.height}: {worst[-1]:.1e}")
    lines.append(
        f"{backbone}, {head.about.method}: {len(pictures)} pictures, {flipped} other answers, largest difference of a "
        f"probability {max(worst):.1e}, {sum(own > MARK for own in worst)} beyond {MARK:g}."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="lite0")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--downloads", type=Path, default=Path("build/downloads"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        asked = (given.backbone, given.weights, given.method, given.pictures, given.downloads)
        print(compare(*asked, Path(made)))
