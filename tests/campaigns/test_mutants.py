"""No mutant of a room passes all of its tests, but for those that compute the same."""

import subprocess
import sys

import pytest
from campaigns.mutation import ROOMS, ROOT

pytestmark = pytest.mark.ci

EQUIVALENT = {
    # lengths that are off by the tolerance to the last bit
    "data.gate._check_images: worst <= NORM_TOLERANCE -> worst < NORM_TOLERANCE",
    "data.features._scaled: np.abs(norms - 1).max(initial=0) <= NORM_TOLERANCE -> "
    "np.abs(norms - 1).max(initial=0) < NORM_TOLERANCE",
    # how many scores are computed at a time
    "data.gate._judged: 1 -> 2",
    "data.gate._judged: MOST_SCORES // len(text) -> MOST_SCORES * len(text)",
    # one row of ones, of which the first is read
    "stats.correlation.rank_correlation: 1 -> 2",
    # a floor for rounding: residuals of a constant side are zero, and zero times anything is zero
    "stats.correlation.weighted_rank_correlation: 1e-09 * total[:, 0] ** 3 -> 1e-09 / total[:, 0] ** 3",
    "stats.correlation.weighted_rank_correlation: total[:, 0] ** 3 -> total[:, 0] * 3",
    "stats.correlation.weighted_rank_correlation: 3 -> 4 #2",
    "stats.correlation.weighted_rank_correlation: (spread_a > floor) & (spread_b > floor) -> "
    "(spread_a > floor) | (spread_b > floor)",
    "stats.correlation.weighted_rank_correlation: spread_a > floor -> spread_a >= floor",
    "stats.correlation.weighted_rank_correlation: spread_b > floor -> spread_b >= floor",
    "stats.correlation._quotient: 1 -> 2",
    # between 100 and 1,000 three digits are a number without decimals
    "report.tables.stratum_probes._of_one_stratum: 100 -> 101",
    # clusters of one cell each have no residue, so what it is divided by does not matter
    "stats.coverage.matched_design: 1 -> 2 #2",
    # another seed, another sign of symmetric noise
    "stats.coverage.simulate_coverage: 1 -> 2",
    "stats.coverage._worlds: sizes[:, None] * effects + np.sqrt(sizes)[:, None] * noise -> "
    "sizes[:, None] * effects - np.sqrt(sizes)[:, None] * noise",
    # both sides of the comparison are equal where both are zero, which adds nothing
    "stats.crossed.crossed_variance: A > TIE * E -> A >= TIE * E",
    "stats.crossed.crossed_variance: B > TIE * E -> B >= TIE * E",
    # the mean of a stratum without weight is zero, whatever that is divided by
    "stats.draw_noise.draw_noise: 1 -> 2",
    # degrees of freedom of a variance that is unknown: every comparison with it is undecided
    "stats.draw_noise.draw_noise: 1.0 -> 2.0",
    # a difference that is at the limit to the last bit
    "stats.draw_noise.judge: abs(z) > limit -> abs(z) >= limit",
    "stats.draw_noise.judge: limit * error <= MATTERS -> limit * error < MATTERS",
    # without a dataset there are no hits either
    "stats.leaderboard.with_draws_and_pictures: 0 < estimate.G <= FEW_DATASETS -> 0 <= estimate.G <= FEW_DATASETS",
    # equal numbers have p = 1 and are never decided
    "stats.paired_tests.SampleContrast.decided_for: self.only_first > self.only_second -> "
    "self.only_first >= self.only_second",
    # rows of counts that nothing points at, and a count that is only compared with zero
    "stats.panel.Panel.present_at_every_shot_count: -1 -> +1",
    "stats.panel.Panel.present_at_every_shot_count: 1 -> 2 #2",
    "stats.panel.Panel.present_at_every_shot_count: 1 -> 2 #4",
}


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_no_mutant_survives(room):
    command = [sys.executable, "tests/campaigns/mutation.py", room]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    survivors = {line for line in done.stdout.splitlines() if line.startswith(f"{room}.")}
    print(done.stdout.splitlines()[-1])
    assert survivors <= EQUIVALENT
