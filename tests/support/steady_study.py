"""A study whose cells take a set time, so that kills find work in flight."""

STUDY = """
name = "steady"
datasets = ["sim-satellite", "sim-pets"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1, 2, 4]
seeds = {seeds}
methods = ["zero_shot", "loo_blend", "steady:Steady"]
"""
# Logs every fit, so that a test can count how often anything was computed. The seconds lie in a file of their own: with
# them in the code, records of another speed would be records of other code.
METHOD = """
import os, time
from kshot.methods.ncm import NCM

class Steady(NCM):
    def _fit(self, task):
        log = os.open("fits.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, b"x")
        os.close(log)
        time.sleep(float(open("seconds.txt").read()))
        super()._fit(task)
"""


def cells_of(seeds: int) -> int:
    return 2 * 3 * seeds
