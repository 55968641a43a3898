"""Random mutations of study files and network files."""

import json
import sqlite3
import zipfile
from contextlib import closing, suppress

import numpy as np

TABLES = ("setting", "note", "trial", "report", "search", "search_state")
# Values that a cell may get. SQLite stores them as they are where the type of the column allows.
CELLS = (
    None,
    0,
    1,
    -1,
    2**31,
    2**62,
    -(2**63),
    1.5,
    1e300,
    -1e308,
    1e-320,
    float("inf"),
    "",
    "abc",
    "a\nb\0c",
    "1.5",
    "[]",
    "{}",
    "null",
    '"text"',
    "NaN",
    "-1e999",
    "9" * 5000,
    "[" * 100_000,
    '{"a": ' * 2000 + "1" + "}" * 2000,
    "x" * 10_000,
    "localhost:99999999999999999999:x",
    "__import__('os').system('true')",
    b"",
    b"\x00" * 7,
    b"\xff" * 64,
    b"cos\nsystem\n(S'true'\ntR.",
)
# Values that a node of JSON may get.
NODES = (
    None,
    True,
    0,
    -1,
    2.5,
    10**400,
    2**63,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "abc",
    "depth",
    "function",
    "0",
    [],
    {},
    [[]],
    {"a": {}},
    {"tuple": [1, {"tuple": []}]},
    {"name": "x"},
    [["depth", ">=", 2.0]],
    [["depth", "~", 2.0], ["depth", "<", 9]],
    [1, 2, 3],
)


def _pick(rng, values):
    return values[int(rng.integers(len(values)))]


# Mutations of bytes


def flip_bytes(path, rng):
    """Change some bytes."""
    content = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 30))):
        if content:
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
    path.write_bytes(content)


def cut_or_fill(path, rng):
    """Cut the file, append to it, or overwrite a block."""
    content = path.read_bytes()
    start = int(rng.integers(len(content) + 1))
    block = rng.bytes(int(rng.integers(1, 5000)))
    ways = (
        content[:start],
        content + block,
        content[:start] + bytes(len(block)) + content[start + len(block) :],
        content[:start] + block + content[start + len(block) :],
    )
    path.write_bytes(_pick(rng, ways))


# Mutations of rows


def _names(db, table):
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def _pick_row(db, rng):
    """Return a table with rows and the rowid condition of one of them."""
    table = _pick(rng, TABLES)
    names = _names(db, table)
    rows = db.execute(f"SELECT * FROM {table} LIMIT 99").fetchall() if names else []
    return (table, names, _pick(rng, rows)) if rows else (table, names, None)


def _where(names):
    return " AND ".join(f"{name} IS ?" for name in names)


def _set(db, rng, change):
    """Replace a cell of a random row by change(value)."""
    table, names, row = _pick_row(db, rng)
    if row is None:
        return
    i = int(rng.integers(len(names)))
    query = f"UPDATE {table} SET {names[i]} = ? WHERE {_where(names)}"
    with suppress(sqlite3.IntegrityError):  # such as NOT NULL
        db.execute(query, (change(row[i]), *row))


def set_cell(db, rng):
    """Put any value into a cell."""
    _set(db, rng, lambda value: _pick(rng, CELLS))


def set_text_of_wrong_encoding(db, rng):
    """Put bytes that are not UTF-8 into a cell, as text."""
    table, names, row = _pick_row(db, rng)
    if row is not None:
        query = f"UPDATE {table} SET {_pick(rng, names)} = CAST(x'c328ff' AS TEXT)"
        with suppress(sqlite3.IntegrityError):
            db.execute(f"{query} WHERE {_where(names)}", row)


def flip_blob(db, rng):
    """Change bytes of a cell with bytes."""

    def change(value):
        if not isinstance(value, bytes) or not value:
            return value
        content = bytearray(value)
        content[int(rng.integers(len(content)))] = int(rng.integers(256))
        return bytes(content[: int(rng.integers(1, 2 * len(content)))])

    for _ in range(5):
        _set(db, rng, change)


def change_json(db, rng):
    """Change a node of JSON in settings, notes, configurations or infos."""
    places = [("setting", "name", "value")] * 3 + [("note", "name", "value")] * 3
    places += [("trial", "number", "config"), ("trial", "number", "info")]
    table, key, column = _pick(rng, places)
    with suppress(sqlite3.OperationalError):
        rows = db.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
        if not rows:
            return
        name, text = _pick(rng, rows)
        with suppress(ValueError, TypeError, RecursionError):
            changed = json.dumps(change_node(json.loads(text), rng))
            query = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"
            db.execute(query, (changed, name))


def change_node(value, rng):
    """Return JSON in which one node is replaced, deleted or added."""
    is_inner = isinstance(value, (dict, list)) and len(value) > 0
    if not is_inner or rng.random() < 0.1:
        return _pick(rng, NODES)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = _pick(rng, keys)
    action = rng.random()
    if action < 0.15:
        del value[key]
    elif action < 0.25 and isinstance(value, dict):
        value[_pick(rng, ("", "abc", "self", "depth"))] = _pick(rng, NODES)
    else:
        value[key] = change_node(value[key], rng)
    return value


def delete_rows(db, rng):
    """Delete one row, or all rows of a table."""
    table, names, row = _pick_row(db, rng)
    if row is None:
        return
    if rng.random() < 0.5:
        db.execute(f"DELETE FROM {table}")
    else:
        db.execute(f"DELETE FROM {table} WHERE {_where(names)}", row)


def copy_row(db, rng):
    """Store a row again under another key."""
    table, names, row = _pick_row(db, rng)
    if row is not None:
        row = [
            _pick(rng, (7, 2**40, -3, "abc", b"x"))
            if name in ("number", "name", "step", "leaf", "finish_order")
            else value
            for name, value in zip(names, row, strict=True)
        ]
        marks = ", ".join("?" * len(row))
        with suppress(sqlite3.Error):
            db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)


def swap_columns(db, rng):
    """Exchange two columns of a table."""
    table, names, _ = _pick_row(db, rng)
    if len(names) > 1:
        one, other = rng.choice(names, 2, replace=False)
        with suppress(sqlite3.IntegrityError):
            db.execute(f"UPDATE {table} SET {one} = {other}, {other} = {one}")


# Mutations of tables


def change_table(db, rng):
    """Drop, rename or replace a table or a column."""
    table = _pick(rng, TABLES)
    names = _names(db, table)
    if not names:
        return
    name = _pick(rng, names)
    copy = f"CREATE TABLE other AS SELECT * FROM {table}"
    ways = (
        [f"DROP TABLE {table}"],
        [f"ALTER TABLE {table} RENAME TO other"],
        [f"ALTER TABLE {table} RENAME COLUMN {name} TO other"],
        [f"ALTER TABLE {table} DROP COLUMN {name}"],
        [f"ALTER TABLE {table} ADD COLUMN other DEFAULT 1"],
        ["DROP INDEX open_trials"],
        # a table without types and constraints
        [copy, f"DROP TABLE {table}", f"ALTER TABLE other RENAME TO {table}"],
        [
            f"ALTER TABLE {table} RENAME TO other",
            f"CREATE VIEW {table} AS SELECT * FROM other",
        ],
        [
            f"ALTER TABLE {table} RENAME TO other",
            f"CREATE VIEW {table} AS WITH RECURSIVE r(n) AS "
            "(SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        ],
        [
            f"CREATE TRIGGER t AFTER UPDATE ON {table} BEGIN DELETE FROM {table}; END",
        ],
    )
    with suppress(sqlite3.Error):
        for statement in _pick(rng, ways):
            db.execute(statement)


def change_header(db, rng):
    """Change the version of the schema, or the application id."""
    name = _pick(rng, ("user_version", "user_version", "application_id"))
    db.execute(f"PRAGMA {name} = {_pick(rng, (-1, 0, 1, 2, 4, 2**31 - 1))}")


_ROW_MUTATIONS = (
    *(set_cell,) * 6,
    *(change_json,) * 6,
    set_text_of_wrong_encoding,
    flip_blob,
    delete_rows,
    copy_row,
    swap_columns,
    change_table,
    change_header,
)


def mutate_study(path, rng):
    """Mutate a study file; return the names of the mutations."""
    if rng.random() < 0.15:
        mutation = _pick(rng, (flip_bytes, cut_or_fill))
        mutation(path, rng)
        return [mutation.__name__]
    chosen = [_pick(rng, _ROW_MUTATIONS) for _ in range(int(rng.integers(1, 4)))]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = MEMORY")
        db.execute("PRAGMA ignore_check_constraints = ON")
        for mutation in dict.fromkeys(chosen):  # a copied row only once
            with suppress(
                sqlite3.OperationalError
            ):  # another one left a wrong encoding
                mutation(db, rng)
    return [mutation.__name__ for mutation in chosen]


# Network files


def mutate_networks(path, rng):
    """Mutate a network file; return the names of the mutations."""
    if rng.random() < 0.3:
        mutation = _pick(rng, (flip_bytes, cut_or_fill))
        mutation(path, rng)
        return [mutation.__name__]
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    if rng.random() < 0.6:
        head = change_node(json.loads(str(arrays["head"])), rng)
        arrays["head"] = np.array(json.dumps(head))
        np.savez(path, **arrays)
        return ["head"]
    name = _pick(rng, list(arrays))
    ways = {
        "missing": None,
        "object": np.array([{"a": 1}, print], object),
        "text": np.array("abc"),
        "empty": np.zeros(0),
        "scalar": np.array(3.0),
        "flat": np.asarray(arrays[name]).reshape(-1),
        "doubled": np.concatenate([np.atleast_1d(arrays[name])] * 2),
        "complex": np.full(np.shape(arrays[name]), 1j),
        "nan": np.full(np.shape(arrays[name]), np.nan),
        "huge": np.full(np.shape(arrays[name]), 1e300),
        "times": np.zeros(np.shape(arrays[name]), "datetime64[s]"),
    }
    way = _pick(rng, list(ways))
    del arrays[name]
    if ways[way] is not None:
        arrays[name] = ways[way]
    np.savez(path, **arrays)
    if way == "missing" and rng.random() < 0.5:
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"{name}.npy", rng.bytes(50))
    return [f"{name} {way}"]
