"""Tables of real learning curves: files of our own making, and the real ones where they are."""

import gzip
import os

import numpy as np
import pytest

from bonas.problems import learning_curves, metaqnn


@pytest.fixture(scope="module", params=learning_curves.NAMES)
def real(request):
    if not os.environ.get("BONAS_DATA"):
        pytest.skip("BONAS_DATA names no folder with the real data")
    return request.param, learning_curves.load(request.param)


def resnets(accuracy, rates=("0.001", "0.0004", "0.001")):
    head = ",".join(["num_params", "lr", *(f"acc_{i}" for i in range(50))])
    networks = zip((130000, 500000, 2000000), rates, accuracy, strict=True)
    return "\n".join(
        [head, *(f"{n},{lr}," + ",".join(map(str, curve)) for n, lr, curve in networks)]
    )


def lstms(perplexity, layers=(2, 5, 2)):
    head = ",".join(
        [
            "base_model",
            "training_dataset",
            "n_layer",
            "n_inputs",
            "base_lr",
            "ss",
            *(f"ep_{i}" for i in range(60)),
        ]
    )
    networks = zip(layers, (10, 200, 10), perplexity, strict=True)
    body = (
        f"lstm,penntreebank,{of},{n},0.1,15000," + ",".join(map(str, curve))
        for of, n, curve in networks
    )
    return "\n".join([head, *body])


ACCURACY = np.linspace(0.2, 0.8, 150).reshape(3, 50)
PERPLEXITY = np.linspace(700.0, 70.0, 180).reshape(3, 60)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_errors_of_residual_networks_are_read(folder, packed):
    text = resnets(ACCURACY)
    if packed:
        (folder / "deep_resnets_cifar10.csv.gz").write_bytes(
            gzip.compress(text.encode())
        )
    else:
        (folder / "deep_resnets_cifar10.csv").write_text(text)
    found = learning_curves.load("resnet_cifar10")
    np.testing.assert_allclose(found.values[:, 0], 1.0 - ACCURACY, atol=1e-12)
    assert found.steps.tolist() == list(range(1, 51))
    assert found.space.decode(found.x[1]) == {
        "weights": 500000,
        "rate": pytest.approx(0.0004),
    }


def test_a_network_trained_twice_is_there_once(folder):
    (folder / "lstm_ptb.csv").write_text(lstms(PERPLEXITY))
    found = learning_curves.load("lstm_ptb")
    assert found.values.shape == (2, 2, 60)
    np.testing.assert_allclose(found.values[0], np.log(PERPLEXITY[[0, 2]]))
    np.testing.assert_allclose(found.values[1], np.log(PERPLEXITY[[1, 1]]))
    assert found.space.decode(found.x[1]) == {"layers": 5, "cells": 200}


def test_metaqnn_goes_from_accuracies_to_errors(folder):
    nets = ["[C(128,1,1), C(256,5,1), D(1,2), P(5,3), SM(10)]", "[C(64,1,1), SM(10)]"]
    curves = np.linspace(0.1, 0.7, 40).reshape(2, 20)
    head = "net,lr," + ",".join(f"acc_{i}" for i in range(1, 21))
    body = [
        f'"{net}",0.001,' + ",".join(map(str, curve))
        for net, curve in zip(nets, curves, strict=True)
    ]
    (folder / "metaqnn_svhn.csv").write_text("\n".join([head, *body]))
    found = learning_curves.load("metaqnn_svhn")
    np.testing.assert_allclose(found.values[:, 0], 1.0 - curves)
    np.testing.assert_allclose(found.x, metaqnn.load("svhn").x)


BAD = {
    "a column missing": (
        resnets(ACCURACY).replace("acc_7,", "other,"),
        "csv: expected a CSV file with the column 'acc_7'",
    ),
    "no row": (
        resnets(ACCURACY).splitlines()[0],
        "csv: expected a CSV file with the column 'num_params' and at least one row",
    ),
    "no number": (
        resnets(ACCURACY, rates=("0.001", "high", "0.001")),
        "csv: row 1: lr must be a number; got nan",
    ),
    "impossible": (
        resnets(ACCURACY + 0.5),
        "csv: row 1: accuracies must be between 0 and 1; got 1.0",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_broken_file_is_refused(folder, text, message):
    (folder / "deep_resnets_cifar10.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        learning_curves.load("resnet_cifar10")


def test_an_impossible_perplexity_names_its_row(folder):
    (folder / "lstm_ptb.csv").write_text(lstms(PERPLEXITY - 100.0))
    with pytest.raises(ValueError, match="row 2: perplexities must be above 1"):
        learning_curves.load("lstm_ptb")


@pytest.mark.parametrize("name", learning_curves.NAMES)
def test_a_missing_file_says_where_to_get_it(folder, name):
    with pytest.raises(FileNotFoundError, match="accelerating_nas"):
        learning_curves.load(name, download=False)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"one of metaqnn_cifar10, .*; got 'mnist'"):
        learning_curves.load("mnist")


# The real ones

SIZES = {
    "metaqnn_cifar10": (1000, 20),
    "metaqnn_svhn": (1300, 20),
    "resnet_cifar10": (486, 50),
    "lstm_ptb": (280, 60),
}


@pytest.mark.slow
def test_the_tables_have_their_published_size(real):
    name, table = real
    networks, epochs = SIZES[name]
    assert table.values.shape == (networks, 1, epochs)
    assert np.isfinite(table.values).all()


def test_training_makes_networks_better(real):
    """From the first epoch to the last, for most of them; so errors are errors, and are minimized."""  # noqa: E501
    values = np.asarray(real[1].values)[:, 0]
    assert np.mean(values[:, -1] < values[:, 0]) > 0.9
