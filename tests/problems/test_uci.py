"""The eight UCI sets as text files from a local server: synthetic sets, and the real ones if
BONAS_DATA has them.
"""

import hashlib
import os
import re
import struct
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from bonas.problems import datasets, uci
from bonas.problems.uci import UCI, Uci

# Rows of two features and a target; 0.1 and 4305.35 are no float32 numbers.
ROWS = [(0.1, 2.0, 4305.35), (-3.5e-3, 5.0, 6.0), (7.0, 8.0, -9.0)]
X, Y = np.array(ROWS)[:, :2], np.array(ROWS)[:, 2]
SHA256 = hashlib.sha256(struct.pack("<9f", *X.reshape(-1), *Y)).hexdigest()
TEXT = "0.1 2 4305.35\n-3.5e-3\t5.0  6\n   7 8 -9 \n\n"


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server and the folder that it publishes."""
    folder = tmp_path_factory.mktemp("public")
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    yield server, folder
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def real():
    """The folder of the real data."""
    if not os.environ.get("BONAS_DATA"):
        pytest.skip("BONAS_DATA names no folder with the real data")
    return Path(os.environ["BONAS_DATA"])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bonas" / "data" / "uci"


@pytest.fixture
def publish(running, cache, monkeypatch):
    """publish(name, text) puts the text of a set on the server, the only place where there is one."""  # noqa: E501
    server, folder = running
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("BONAS_DATA", raising=False)
    monkeypatch.setattr(uci, "TEXT_FILES_URL", f"http://127.0.0.1:{server.server_port}")

    def put(name, text):
        path = folder / UCI[name].folder / "data" / "data.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return put


@pytest.fixture
def made(publish, monkeypatch):
    """publish(text) for a set of our own, which goes by the name of yacht."""
    monkeypatch.setitem(
        UCI, "yacht", Uci(3, ("a", "b"), "https://example.org", "made-up", SHA256)
    )
    return partial(publish, "yacht")


def load(name="yacht"):
    return datasets.load(name, progress=False)


# What comes down


def test_a_text_becomes_examples(made):
    made(TEXT)
    found = load()
    assert (found.task, found.names, found.classes) == ("regression", ("a", "b"), ())
    np.testing.assert_array_equal(found.x, X.astype(np.float32), strict=True)
    np.testing.assert_array_equal(found.y, Y.astype(np.float32), strict=True)


def test_a_second_call_needs_no_server(made):
    path = made(TEXT)
    load()
    path.unlink()
    np.testing.assert_array_equal(load().y, Y.astype(np.float32))


def test_a_spare_column_may_follow_the_target(made, monkeypatch):
    monkeypatch.setitem(UCI, "yacht", UCI["yacht"]._replace(spare=1))
    made("\n".join(f"{a} {b} {y} 1e3" for a, b, y in ROWS))
    np.testing.assert_array_equal(load().y, Y.astype(np.float32))


def test_only_energy_has_a_spare_column():
    assert [name for name, one in UCI.items() if one.spare] == ["energy"]


@pytest.mark.parametrize(
    "form",
    [str, "{:.18e}".format, "{:.8e}".format],
    ids=["shortest", "19 digits", "9 digits"],
)
def test_decimals_become_the_float32_they_stand_for(made, form):
    """All kinds of bits; nine digits tell float32 numbers apart."""
    values = (
        np.random.default_rng(0)
        .integers(0, 0x7F000000, (2000, 3), dtype=np.uint32)
        .view(np.float32)
    )
    text = made("").with_name("bits.txt")
    text.write_text("\n".join(" ".join(form(value) for value in row) for row in values))
    found = uci.read(text, "yacht")
    np.testing.assert_array_equal(
        np.column_stack([found.x, found.y]).view(np.uint32), values.view(np.uint32)
    )


# What is refused

REFUSED = {
    "value": (
        TEXT.replace("4305.35", "4305.36"),
        "its numbers differ from the set yacht",
    ),
    "order": (
        "\n".join(TEXT.splitlines()[::-1]),
        "its numbers differ from the set yacht",
    ),
    "rows": (
        "\n".join(TEXT.splitlines()[:2]),
        r"expected X of shape \(3, 2\) .* got \(2, 2\)",
    ),
    "nothing": ("", r"got \(0, 2\)"),
    "few columns": (
        TEXT.replace("5.0  6", "5.0"),
        "expected 3 columns .*2 features.*; line 2 has 2",
    ),
    "many columns": (
        TEXT.replace("-9", "-9 10"),
        "expected 3 columns .*2 features.*; line 3 has 4",
    ),
    "word": (
        TEXT.replace("5.0", "five"),
        r"line 2 is not a row of numbers: '-3\.5e-3\\tfive  6'",
    ),
    "missing": (TEXT.replace("8", "nan"), "line 3 is not a row of numbers: '7 nan -9'"),
    "too large": (TEXT.replace("8", "1e39"), "line 3 is not a row of numbers"),
    "page": ("<!DOCTYPE html>\n", "line 1 is not a row of numbers: '<!DOCTYPE html>'"),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_another_text_is_refused(made, text, problem):
    made(text)
    with pytest.raises(
        ValueError,
        match=rf"^{re.escape(uci.url('yacht'))} is not the expected file: .*{problem}",
    ):
        load()


@pytest.mark.parametrize("text", [text for text, _ in REFUSED.values()], ids=REFUSED)
def test_another_text_never_stays_in_the_cache(made, cache, text):
    made(text)
    with pytest.raises(ValueError):
        load()
    assert list(cache.iterdir()) == []


def test_other_numbers_are_told_with_what_was_expected_and_what_to_do(made):
    made(TEXT.replace("0.1", "0.2"))
    with pytest.raises(
        ValueError,
        match=rf"SHA-256 digest {SHA256}; got .*; put uci/yacht\.npz .* into the folder BONAS_DATA",
    ):
        load()


def test_a_text_that_is_gone_is_named(made):
    made(TEXT).unlink()
    with pytest.raises(
        ConnectionError, match=rf"cannot download {re.escape(uci.url('yacht'))}: .*404"
    ):
        load()


@pytest.mark.parametrize("name", UCI)
def test_no_download_where_none_is_wanted(publish, name):
    url = re.escape(uci.url(name))
    with pytest.raises(
        FileNotFoundError,
        match=rf"uci/{name}\.txt is missing, and downloads are off: get the data from {url}",
    ):
        datasets.load(name, download=False)


# Files of the user's


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """The data folder, with a server that has nothing to give."""
    made("")
    (tmp_path / "data" / "uci").mkdir(parents=True)
    monkeypatch.setenv("BONAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "uci"


def test_arrays_of_the_user_come_before_the_text(folder):
    np.savez(folder / "yacht.npz", X=X + 1.0, y=Y)
    (folder / "yacht.txt").write_text(TEXT)
    np.testing.assert_array_equal(load().x, (X + 1.0).astype(np.float32))


def test_a_text_of_the_user_is_read(folder):
    (folder / "yacht.txt").write_text(TEXT)
    np.testing.assert_array_equal(load().x, X.astype(np.float32))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TEXT.replace("5.0", "five"), "line 2 is not"),
        ("1 2 3\n", r"expected X of shape \(3, 2\); got \(1, 2\)"),
    ],
    ids=["word", "rows"],
)
def test_another_text_of_the_user_is_refused_by_its_path(folder, text, problem):
    (folder / "yacht.txt").write_text(text)
    with pytest.raises(
        ValueError,
        match=rf"^{folder}/yacht\.txt does not contain the data set yacht: {problem}",
    ):
        load()


# Digests


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda array: array.astype(np.float32),
        lambda array: array.astype(">f8"),
    ],
    ids=["columns first", "float32", "big endian"],
)
def test_a_digest_is_of_the_numbers_not_of_their_form(form):
    assert uci.digest(form(X), form(Y)) == SHA256


@pytest.mark.parametrize("name", UCI)
def test_the_real_sets_have_the_digests_of_the_table(real, name):
    with np.load(real / "uci" / f"{name}.npz", allow_pickle=False) as file:
        assert uci.digest(file["X"], file["y"]) == UCI[name].sha256


@pytest.mark.slow
@pytest.mark.parametrize("name", UCI)
def test_the_real_sets_are_the_same_from_their_text(real, publish, cache, name):
    expected = datasets.read_npz(real / "uci" / f"{name}.npz")
    path = publish(name, "")
    np.savetxt(path, np.column_stack([expected.x, expected.y]))
    found = load(name)
    assert (cache / f"{name}.txt").is_file()
    assert found[2:] == expected[2:]
    np.testing.assert_array_equal(found.x, expected.x, strict=True)
    np.testing.assert_array_equal(found.y, expected.y, strict=True)
