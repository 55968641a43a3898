"""Objectives that other processes can import, and their space."""

import os
import signal
import time

import bonas
from bonas.study.database import Database

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))


def loss(config):
    return (config["a"] - 0.3) ** 2 + config["b"]


def slow(config):
    time.sleep(0.05)
    return loss(config)


def hangs(config):
    if config["b"] > 0.5:
        time.sleep(60.0)
    return loss(config)


def deadly(config):
    """Kill the process that evaluates it, in half of the space."""
    if config["b"] > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return loss(config)


def reporting(config, trial):
    for step in range(3):
        trial.report(step, config["a"] + step)
    return config["a"]


def deaf(config):
    """Hang at one point, and ignore the signal of the timer."""
    if config["b"] == 1.0:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(60.0)
    return loss(config)


def known_worker(config):
    """Write the process id to a file name that the test reads, then wait."""
    with open(
        os.path.join(os.environ["BONAS_TEST_FOLDER"], f"{config['a']!r}-{os.getpid()}"),
        "x",
    ):
        time.sleep(0.3)
    return loss(config)


def made(path):
    """Create the file of a study."""
    Database(path, create=True).close()
    return True
