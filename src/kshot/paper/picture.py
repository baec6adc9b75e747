"""One picture of a judgement: z of every claim in order, with the band that chance alone gives each place."""

from html import escape

import numpy as np

from kshot.paper.verdict import DIFFERS, JudgedClaims

WIDTH, HEIGHT, LEFT, FOOT, TOP = 720, 300, 46, 34, 14
BAND, BEYOND, INSIDE = "#9aa5b1", "#c2410c", "#0b5cad"
INNER = (0.025, 0.975)


def deviations(judged: JudgedClaims) -> str:
    """An SVG without styles, so that a page of strict policy shows it; a point's title is its claim. Empty where no
    claim depends on draws."""
    lines = sorted((line for line in judged.lines if line.score == line.score), key=lambda line: line.score)
    if not lines or not len(judged.nulls):
        return ""
    ordered = np.sort(judged.nulls, axis=1)
    places = np.linspace(0, ordered.shape[1] - 1, len(lines)).round().astype(int)
    low, high = np.quantile(ordered[:, places], INNER, axis=0)
    scores = np.array([line.score for line in lines])
    most = float(np.ceil(min(max(np.abs(scores).max(), judged.level, high.max()) + 0.5, 12)))
    x = LEFT + (np.arange(len(lines)) + 0.5) * (WIDTH - LEFT - 8) / len(lines)

    def y(z: float) -> float:
        return float(TOP + (most - np.clip(z, -most, most)) * (HEIGHT - TOP - FOOT) / (2 * most))

    outline = [*zip(x, low, strict=True), *reversed(list(zip(x, high, strict=True)))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="z of {len(lines)} claims in order" font-family="sans-serif" font-size="11" fill="currentColor">',
        f'<polygon fill="{BAND}" fill-opacity="0.35" points="{" ".join(f"{a:.1f},{y(b):.1f}" for a, b in outline)}"/>',
    ]
    for z in (-judged.level, 0.0, judged.level):
        dash = "" if z == 0 else ' stroke-dasharray="4 3"'
        ends = f'x1="{LEFT}" x2="{WIDTH - 8}" y1="{y(z):.1f}" y2="{y(z):.1f}"'
        parts.append(f'<line {ends} stroke="currentColor" stroke-width="0.7"{dash}/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y(z) + 4:.1f}" text-anchor="end">{z:+.1f}</text>')
    for a, line in zip(x, lines, strict=True):
        colour = BEYOND if line.verdict == DIFFERS else INSIDE
        title = escape(f"{line.claim.id}: z = {line.score:+.1f}, {line.verdict}")
        at = f'cx="{a:.1f}" cy="{y(line.score):.1f}"'
        parts.append(f'<circle {at} r="2" fill="{colour}"><title>{title}</title></circle>')
    words = f"{len(lines)} numbers that depend on draws, ordered by z; grey: where 95 of 100 re-runs without fault lie"
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 10}">{escape(words)}</text>')
    return "\n".join([*parts, "</svg>"])
