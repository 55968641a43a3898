"""MetaQNN's networks: strings and back, the space they make, files of our own making, and the real
ones where they are.
"""

import gzip
import os

import jax
import numpy as np
import pytest

from bonas.problems import metaqnn
from bonas.problems.metaqnn import CONVOLUTION, POOLING, Layer, Network

# As the files have them.
NETS = {
    "[C(128,1,1), C(256,5,1), D(1,2), P(5,3), SM(10)]": Network(
        (Layer(CONVOLUTION, 1, 128), Layer(CONVOLUTION, 5, 256), Layer(POOLING, 5))
    ),
    "[C(64,1,1), C(128,1,1), D(1,3), P(2,2), C(64,1,1), D(2,3), C(128,5,1), C(128,3,1), D(3,3), GAP(10), SM(10)]": Network(  # noqa: E501
        (
            Layer(CONVOLUTION, 1, 64),
            Layer(CONVOLUTION, 1, 128),
            Layer(POOLING, 2),
            Layer(CONVOLUTION, 1, 64),
            Layer(CONVOLUTION, 5, 128),
            Layer(CONVOLUTION, 3, 128),
        ),
        average=True,
    ),
    "[C(128,5,1), C(128,3,1), D(1,7), C(512,1,1), P(5,3), D(2,7), C(512,3,1), C(64,3,1), D(3,7), C(256,1,1), P(3,2), D(4,7), "  # noqa: E501
    "C(128,3,1), FC(512), D(5,7), FC(256), D(6,7), SM(10)]": Network(
        (
            Layer(CONVOLUTION, 5, 128),
            Layer(CONVOLUTION, 3, 128),
            Layer(CONVOLUTION, 1, 512),
            Layer(POOLING, 5),
            Layer(CONVOLUTION, 3, 512),
            Layer(CONVOLUTION, 3, 64),
            Layer(CONVOLUTION, 1, 256),
            Layer(POOLING, 3),
            Layer(CONVOLUTION, 3, 128),
        ),
        dense=(512, 256),
    ),
}
STRINGS = list(NETS)
CURVES = np.linspace(0.1, 0.7, 60).reshape(3, 20)
RATES = np.array([0.001, 0.0004, 0.00016])


@pytest.fixture(scope="module")
def made():
    return metaqnn.table(STRINGS, RATES, CURVES)


@pytest.fixture(scope="module", params=metaqnn.NAMES)
def real(request):
    if not os.environ.get("BONAS_DATA"):
        pytest.skip("BONAS_DATA names no folder with the real data")
    return metaqnn.load(request.param)


def lines(nets=STRINGS, rates=RATES, curves=CURVES):
    """A file like theirs."""
    head = "net,training_dataset,num_params,depth,lr," + ",".join(
        f"acc_{i}" for i in range(1, 21)
    )
    rows = [
        f'"{net}",cifar10,1,1,{rate},' + ",".join(map(str, curve))
        for net, rate, curve in zip(nets, rates, curves, strict=True)
    ]
    return "\n".join([head, *rows]) + "\n"


# Strings


@pytest.mark.parametrize(
    ("net", "network"), NETS.items(), ids=["short", "average", "dense"]
)
def test_a_string_is_its_network_and_back(net, network):
    assert metaqnn.parse(net) == network
    assert metaqnn.text(network) == net


BAD = {
    "nonsense": ("hello", "must start with a convolution; got 'hello'"),
    "pooling first": ("[P(2,2), SM(10)]", "must start with a convolution"),
    "unknown layer": ("[C(64,1,1), X(3), SM(10)]", "cannot parse"),
    "no softmax": (
        "[C(64,1,1)]",
        r"expected '\[C\(64,1,1\), SM\(10\)\]' for these layers",
    ),
    "cut off": ("[C(64,1,1), C(128,", "cannot parse"),
    "another stride": ("[C(64,3,2), SM(10)]", "cannot parse"),
    "another pooling": ("[C(64,3,1), P(4,4), D(1,1), SM(10)]", "cannot parse"),
    "dropout missing": ("[C(64,3,1), C(64,3,1), SM(10)]", "cannot parse"),
    "dropout miscounted": ("[C(64,3,1), C(64,3,1), D(1,2), SM(10)]", "cannot parse"),
}


@pytest.mark.parametrize(("net", "message"), BAD.values(), ids=BAD)
def test_a_broken_string_is_refused(net, message):
    with pytest.raises(ValueError, match=message):
        metaqnn.parse(net)


# Tables


def test_columns_say_what_the_network_is(made):
    assert made.space.decode(made.x[0]) == {
        "layers": 3,
        "size_1": 1,
        "filters_1": 128,
        "kind_2": CONVOLUTION,
        "size_2": 5,
        "filters_2": 256,
        "kind_3": POOLING,
        "size_3": 5,
        "dense": 0,
        "average": False,
        "rate": pytest.approx(0.001),
    }
    config = made.space.decode(made.x[2])
    assert {
        name: config[name] for name in ("layers", "dense", "units_1", "units_2")
    } == {
        "layers": 9,
        "dense": 2,
        "units_1": 512,
        "units_2": 256,
    }
    assert "average" not in config


def test_rows_are_what_encode_makes_of_them(made):
    for row in made.x:
        np.testing.assert_allclose(
            made.space.space.encode(made.space.decode(row)), row, atol=1e-12
        )


def test_errors_are_those_after_the_last_epoch(made):
    np.testing.assert_allclose(made.error, 1.0 - CURVES[:, 19])
    np.testing.assert_array_equal(made.curves, CURVES)
    assert made.depth.tolist() == [4, 8, 12]


def test_the_rate_can_be_left_out():
    table = metaqnn.table(STRINGS, RATES, CURVES, rate=False)
    assert "rate" not in table.space.names
    np.testing.assert_array_equal(table.rate, RATES)


def test_a_broken_string_names_its_row():
    with pytest.raises(ValueError, match="row 1: cannot parse"):
        metaqnn.table([STRINGS[0], "[C(64,3,2), SM(10)]", STRINGS[2]], RATES, CURVES)


def test_what_is_outside_the_space_names_its_row_and_column():
    wide = STRINGS[0].replace("256", "1024")
    with pytest.raises(
        ValueError, match=r"row 2: filters_2 must be in \[64, 512\]; got 1024"
    ):
        metaqnn.table([*STRINGS[1:], wide], RATES, CURVES)


def test_an_impossible_accuracy_names_its_row():
    curves = CURVES.copy()
    curves[1, 3] = np.nan
    with pytest.raises(ValueError, match="row 1: accuracies must be between 0 and 1"):
        metaqnn.table(STRINGS, RATES, curves)


def test_one_network_twice_is_refused():
    with pytest.raises(ValueError, match="rows 0 and 2 are the same point"):
        metaqnn.table([STRINGS[0], STRINGS[1], STRINGS[0]], np.full(3, 0.001), CURVES)


@pytest.mark.slow
def test_a_made_up_table_has_the_form_of_the_real_ones():
    table = metaqnn.synthetic(jax.random.key(0), 20, positions=3)
    assert len(table.error) == table.space.size == len(table.networks) == 20
    assert table.curves.shape == (20, metaqnn.EPOCHS)
    assert len(np.unique(table.depth)) > 2


# Files


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_files_of_the_data_folder_are_read(folder, packed, made):
    if packed:
        (folder / "metaqnn_svhn.csv.gz").write_bytes(gzip.compress(lines().encode()))
    else:
        (folder / "metaqnn_svhn.csv").write_text(lines())
    table = metaqnn.load("svhn")
    assert table.networks == made.networks
    np.testing.assert_allclose(table.x, made.x, atol=1e-12)


def test_a_file_without_a_column_is_refused(folder):
    (folder / "metaqnn_svhn.csv").write_text(lines().replace("acc_7,", "other,"))
    with pytest.raises(
        ValueError,
        match=r"metaqnn_svhn.csv: expected a CSV file with the column 'acc_7'",
    ):
        metaqnn.load("svhn")


@pytest.mark.parametrize("bad", ["", "high"])
def test_what_is_no_number_names_its_row_and_column(folder, bad):
    (folder / "metaqnn_svhn.csv").write_text(lines(rates=[0.001, bad, 0.001]))
    with pytest.raises(
        ValueError, match=rf"metaqnn_svhn.csv: row 1: lr must be a number; got '{bad}'"
    ):
        metaqnn.load("svhn")


def test_a_missing_file_says_where_to_get_it(folder):
    with pytest.raises(FileNotFoundError, match="accelerating_nas"):
        metaqnn.load("svhn", download=False)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="one of cifar10, svhn; got 'mnist'"):
        metaqnn.load("mnist")


# The real ones


@pytest.mark.slow
def test_the_tables_have_their_published_size(real):
    """Baker et al. 2018, and the counts of the files' own depth column."""
    n = len(real.error)
    assert n in (1000, 1300)
    assert real.curves.shape == (n, 20)
    assert (real.depth.min(), real.depth.max()) == (2, 19 if n == 1000 else 13)


def test_dropout_and_strides_follow_from_the_rest(real):
    """Reading would have failed otherwise; so no two networks share a string either."""
    assert len({metaqnn.text(network) for network in real.networks}) == len(real.error)


def test_networks_are_told_apart_without_the_rate(real):
    """So the rate is not needed: what differs between the rows differs elsewhere."""
    kept = [i for i, name in enumerate(real.space.names) if name != "rate"]
    assert len(np.unique(real.x[:, kept], axis=0)) == len(real.error)
