"""Small drawings inside the page, in its own colours: curves by shots, and an interval beside a sentence."""

import math
from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from kshot.report.figures.style import spread_apart
from kshot.report.slices import ORACLE, primary
from kshot.report.verdict import Finding
from kshot.stats.bootstrap import Estimate
from kshot.stats.leaderboard import leaderboard
from kshot.stats.panel import Panel

BEST = 5
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 40, 190, 12, 40
LABEL = 15.0
BAR = 260


def best_curves(panel: Panel) -> str:
    """The leaderboard's means by shots of the five best heads, and of the oracle ratio in grey."""
    board = leaderboard(primary(panel))
    curves = {placing.method: placing.by_shots for placing in board.ranked[:BEST]}
    curves |= {placing.method: placing.by_shots for placing in board.reference_points if placing.method == ORACLE}
    known = {method: {k: v for k, v in by_shots.items() if v == v} for method, by_shots in curves.items()}
    known = {method: by_shots for method, by_shots in known.items() if by_shots}
    values = [value for by_shots in known.values() for value in by_shots.values()]
    if not values:
        return ""
    steps = _ticks(min(values), max(values))
    x = _scale([math.log2(k) for k in board.shots], LEFT, WIDTH - RIGHT)
    y = _scale([*steps, *values], HEIGHT - BOTTOM, TOP)
    parts = [_text(LEFT - 6, y(step) + 4, f"{step:g}", "end") for step in steps]
    parts += [f'<path class="grid" d="M{LEFT} {y(step):.1f}H{WIDTH - RIGHT}"/>' for step in steps]
    parts += [_text(x(math.log2(k)), HEIGHT - BOTTOM + 17, str(k), "middle") for k in board.shots]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "shots per class", "middle"))
    order = sorted(known, key=lambda method: -known[method][max(known[method])])
    places = -spread_apart(np.array([-y(known[m][max(known[m])]) for m in reversed(order)]), LABEL)[::-1]
    inks = {method: 7 if method == ORACLE else list(known).index(method) for method in known}
    for method, place in zip(order, places, strict=True):
        ink, title = inks[method], panel.titles[method]
        points = [(x(math.log2(k)), y(value)) for k, value in known[method].items()]
        line = "L".join(f"{right:.1f} {down:.1f}" for right, down in points)
        parts.append(f'<path class="line s{ink}{" dash1" if method == ORACLE else ""}" d="M{line}"/>')
        for (right, down), (k, value) in zip(points, known[method].items(), strict=True):
            words = f"{title}, K={k}: {value:.{panel.metric.digits}f}"
            parts.append(
                f'<circle class="f{ink}" cx="{right:.1f}" cy="{down:.1f}" r="4"><title>{escape(words)}</title></circle>'
            )
        parts.append(
            f'<text class="t{ink}" x="{WIDTH - RIGHT + 10}" y="{place + 4:.1f}">{escape(_short(title))}</text>'
        )
    label = f"{panel.metric.title} by shots of {', '.join(panel.titles[m] for m in order)}"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def interval_bars(findings: Sequence[Finding]) -> list[str]:
    """One bar a finding, all on one scale with a line at zero."""
    ends = [0.0, *(end for finding in findings for end in _ends(finding.estimate))]
    x = _scale(ends, 8, BAR - 8)
    return [_bar(finding.estimate, x(0), *map(x, _ends(finding.estimate))) for finding in findings]


def _bar(estimate: Estimate, zero: float, low: float, mean: float, high: float) -> str:
    ink = 7 if not estimate.excludes_zero else 2 if estimate.mean > 0 else 1
    return (
        f'<svg viewBox="0 0 {BAR} 22" aria-hidden="true"><path class="axis" d="M{zero:.1f} 0V22"/>'
        f'<path class="line s{ink}" d="M{low:.1f} 11H{high:.1f}"/>'
        f'<circle class="f{ink}" cx="{mean:.1f}" cy="11" r="5"/></svg>'
    )


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    low, high = (estimate.mean if end is None else end for end in (estimate.low, estimate.high))
    return low, estimate.mean, high


def _scale(values: Sequence[int | float], start: int | float, stop: int | float) -> Callable[[int | float], float]:
    low, high = min(values), max(values)
    return lambda value: start + (value - low) / ((high - low) or 1) * (stop - start)


def _ticks(low: float, high: float) -> list[float]:
    raw = ((high - low) or 1) / 4
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    first = math.floor(low / step)
    return [float(round(i * step, 6)) for i in range(first, math.ceil(high / step) + 1)]


def _text(x: int | float, y: int | float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _short(title: str) -> str:
    return title if len(title) <= 25 else f"{title[:24]}…"
