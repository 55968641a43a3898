"""Objectives that other processes can import, and the space they are for."""

import os
import signal
import time

import bonas

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
    """Ends the process that evaluates it, in half of the space."""
    if config["b"] > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return loss(config)


def deadly_once(config):
    """Ends the first process that evaluates the point that FATAL names, after it has left a mark there."""
    folder = os.environ["BONAS_TEST_FOLDER"]
    mark = os.path.join(folder, "dead")
    if not os.path.exists(mark):
        with open(mark, "x") as file:
            file.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return loss(config)


def reporting(config, trial):
    for step in range(3):
        trial.report(step, config["a"] + step)
    return config["a"]
