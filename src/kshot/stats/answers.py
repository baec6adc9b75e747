"""What a head answered about every test picture: all that a metric needs, and a compact form of it.

A picture costs two bytes for the probability of its class and one for the spread over the others; a picture that was
missed costs four more, for the class that was predicted and its probability. Compression takes about a third of that.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8, UInt16

from kshot.errors import InputError
from kshot.types import Array

# −log p is kept on a logarithmic scale between these two; below counts as certain, above as LARGEST.
SMALLEST, LARGEST, LEVELS = 1e-6, 100.0, 2047
STEP = float(np.log(LARGEST / SMALLEST)) / (LEVELS - 1)
# Of a surprise between SMALLEST and LARGEST; a probability is then off by at most 0.0017, because p·|log p| ≤ 1/e.
RELATIVE_ERROR = float(np.expm1(STEP / 2))
MOST_CLASSES = 2**16
# Where the squares lie in the range that the top probability leaves them.
SPREADS = 127


@dataclass(frozen=True, slots=True)
class Answers:
    """Per picture: its class, the predicted one, −log of the probabilities of both, and the sum of all squared
    probabilities. `unseen` are the classes without shots, where that is known."""

    truth: Int[Array, " n"]
    predicted: Int[Array, " n"]
    true_surprise: Float[Array, " n"]
    top_surprise: Float[Array, " n"]
    squares: Float[Array, " n"]
    n_classes: int
    unseen: Bool[Array, " C"] | None = None

    @property
    def hits(self) -> Bool[Array, " n"]:
        return self.predicted == self.truth

    @property
    def confidence(self) -> Float[Array, " n"]:
        """The probability of the predicted class."""
        return np.exp(-self.top_surprise)


def answers_of(probabilities: Float[Array, "n C"], truth: Int[Array, " n"], predicted: Int[Array, " n"]) -> Answers:
    """Exact answers; the probability of the predicted class is the top one, whatever rounding did to the others."""
    p = np.asarray(probabilities, np.float64)
    rows = np.arange(len(p))
    with np.errstate(divide="ignore"):
        surprises = -np.log(p[rows, truth]), -np.log(p[rows, predicted])
    # −0 would be a sign that nothing means.
    true_surprise, top_surprise = (np.minimum(np.abs(found), LARGEST) for found in surprises)
    return Answers(truth, predicted, true_surprise, top_surprise, np.einsum("nc,nc->n", p, p), p.shape[1])


def one_after_another(parts: list[Answers]) -> Answers:
    """The answers about several blocks of pictures, one after another."""
    return Answers(
        truth=np.concatenate([part.truth for part in parts]),
        predicted=np.concatenate([part.predicted for part in parts]),
        true_surprise=np.concatenate([part.true_surprise for part in parts]),
        top_surprise=np.concatenate([part.top_surprise for part in parts]),
        squares=np.concatenate([part.squares for part in parts]),
        n_classes=parts[0].n_classes,
    )


def pack_answers(answers: Answers) -> bytes:
    """High and low bytes apart, because they compress apart."""
    if answers.n_classes > MOST_CLASSES:
        raise InputError(
            f"answers are kept for at most {MOST_CLASSES:,} classes, not {answers.n_classes:,}. "
            "Write answers = false in the study file."
        )
    missed = ~answers.hits
    top = _codes(answers.top_surprise)
    parts = (
        np.packbits(missed),
        _planes(_codes(answers.true_surprise)),
        _planes(answers.predicted[missed].astype(np.uint16)),
        _planes(top[missed]),
        _spread(answers.squares, np.exp(-_surprises(top)), answers.n_classes),
    )
    return b"".join(part.tobytes() for part in parts)


def unpack_answers(content: bytes, truth: Int[Array, " n"], n_classes: int) -> Answers:
    """The inverse of `pack_answers`, within RELATIVE_ERROR of every surprise."""
    n = len(truth)
    raw = np.frombuffer(content, np.uint8)
    bits = -(-n // 8)
    missed = np.unpackbits(raw[:bits], count=n).astype(bool)
    wrong = int(np.count_nonzero(missed))
    if len(raw) != bits + 3 * n + 4 * wrong:
        raise InputError(f"{len(raw)} bytes are no answers about {n} pictures, {wrong} of them missed.")
    ends = bits + np.cumsum([2 * n, 2 * wrong, 2 * wrong])
    true, named, top, spread = np.split(raw, ends)[0][bits:], *np.split(raw, ends)[1:]
    true_surprise = _surprises(_whole(true))
    predicted, top_surprise = truth.copy(), true_surprise.copy()
    predicted[missed] = _whole(named)
    top_surprise[missed] = _surprises(_whole(top))
    confidence = np.exp(-top_surprise)
    least, most = _range_of_squares(confidence, n_classes)
    squares = least + (most - least) * spread / SPREADS
    return Answers(truth, predicted, true_surprise, top_surprise, squares, n_classes)


def _codes(surprise: Float[Array, " n"]) -> UInt16[Array, " n"]:
    """0 for certainty, else 1 … LEVELS."""
    inside = np.clip(surprise, SMALLEST, LARGEST)
    codes = 1 + np.rint(np.log(inside / SMALLEST) / STEP)
    return np.where(surprise < SMALLEST, 0, codes).astype(np.uint16)


def _surprises(codes: UInt16[Array, " n"]) -> Float[Array, " n"]:
    return np.where(codes == 0, 0.0, SMALLEST * np.exp(STEP * (codes.astype(np.float64) - 1)))


def _planes(numbers: UInt16[Array, " n"]) -> UInt8[Array, " m"]:
    return np.concatenate([numbers >> 8, numbers & 255]).astype(np.uint8)


def _whole(planes: UInt8[Array, " m"]) -> UInt16[Array, " n"]:
    high, low = np.split(planes, 2)
    return (high.astype(np.uint16) << 8) | low


def _range_of_squares(top: Float[Array, " n"], n_classes: int) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """What the squares can add up to where one probability is the largest: the rest even, or on as few as can be."""
    rest = 1 - top
    return top**2 + rest**2 / max(n_classes - 1, 1), top**2 + rest * np.minimum(top, rest)


def _spread(squares: Float[Array, " n"], top: Float[Array, " n"], n_classes: int) -> UInt8[Array, " n"]:
    least, most = _range_of_squares(top, n_classes)
    share = (squares - least) / np.maximum(most - least, np.finfo(float).tiny)
    return np.rint(SPREADS * np.clip(share, 0, 1)).astype(np.uint8)
