"""The schema of a study file: the scripts that convert each version to the next."""

# One script per schema version, applied in order; `user_version` counts those that were applied.
# Never change a script that was released.
MIGRATIONS = (
    """
    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE trial (
        number INTEGER PRIMARY KEY,
        state TEXT NOT NULL CHECK (state IN ('queued', 'asked', 'running', 'told', 'failed')),
        config TEXT NOT NULL, u BLOB NOT NULL, enqueued INTEGER NOT NULL,
        value REAL, cost REAL,
        error TEXT NOT NULL DEFAULT '', traceback TEXT NOT NULL DEFAULT '',
        asked REAL, ended REAL, told INTEGER UNIQUE,
        worker TEXT NOT NULL DEFAULT '', lease REAL NOT NULL DEFAULT 0,
        attempt TEXT NOT NULL DEFAULT '', deaths INTEGER NOT NULL DEFAULT 0,
        info TEXT NOT NULL DEFAULT '{}');
    CREATE INDEX open_trials ON trial (state, number)
        WHERE state IN ('queued', 'asked', 'running');
    CREATE INDEX values_told ON trial (value) WHERE state = 'told';
    CREATE TABLE report (
        trial INTEGER NOT NULL REFERENCES trial (number) ON DELETE CASCADE,
        step INTEGER NOT NULL, value REAL,
        PRIMARY KEY (trial, step)) WITHOUT ROWID;
    CREATE TABLE search (
        asks INTEGER NOT NULL, told INTEGER NOT NULL, capacity INTEGER NOT NULL);
    CREATE TABLE memory (
        part INTEGER, piece INTEGER, bytes BLOB NOT NULL,
        PRIMARY KEY (part, piece)) WITHOUT ROWID
    """,
    """
    ALTER TABLE trial ADD COLUMN begun REAL;
    ALTER TABLE search ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
    UPDATE search SET used = (
        SELECT count(*) FROM trial WHERE NOT enqueued OR told <= search.told);
    INSERT INTO setting
        SELECT 'id', '"' || hex(randomblob(8)) || '"' WHERE EXISTS (SELECT * FROM setting)
    """,
    """
    CREATE TABLE new_trial (
        number INTEGER PRIMARY KEY,
        state TEXT NOT NULL
            CHECK (state IN ('waiting', 'running', 'complete', 'failed', 'pruned')),
        config TEXT NOT NULL,            -- JSON, see bonas.study.serialize
        u BLOB NOT NULL,                 -- point of the unit cube, little-endian float64
        enqueued INTEGER NOT NULL,       -- 1 if a person chose the point, 0 if the search did
        value REAL, cost REAL,
        error TEXT NOT NULL DEFAULT '', traceback TEXT NOT NULL DEFAULT '',
        asked_time REAL, start_time REAL, end_time REAL,     -- Unix time
        finish_order INTEGER UNIQUE,     -- 1, 2, ...: the order in which the search is told
        worker TEXT NOT NULL DEFAULT '', lease REAL NOT NULL DEFAULT 0,
        attempt TEXT NOT NULL DEFAULT '',
        deaths INTEGER NOT NULL DEFAULT 0,                   -- workers that died evaluating it
        info TEXT NOT NULL DEFAULT '{}');
    INSERT INTO new_trial
        SELECT number,
            CASE WHEN state = 'queued' THEN 'waiting'
                 WHEN state = 'asked' THEN 'running'
                 WHEN state = 'told' AND instr(info, '"stopped": ') THEN 'pruned'
                 WHEN state = 'told' THEN 'complete'
                 ELSE state END,
            config, u, enqueued, value, cost, error, traceback, asked, begun, ended, told,
            worker, lease, attempt, deaths, replace(info, '"stopped": ', '"pruned_step": ')
        FROM trial;
    DROP TABLE trial;
    ALTER TABLE new_trial RENAME TO trial;
    CREATE INDEX open_trials ON trial (state, number) WHERE state IN ('waiting', 'running');
    CREATE INDEX trial_values ON trial (value) WHERE state IN ('complete', 'pruned');
    ALTER TABLE search RENAME COLUMN told TO observed;
    ALTER TABLE search RENAME COLUMN used TO points;
    ALTER TABLE memory RENAME TO search_state;
    ALTER TABLE search_state RENAME COLUMN part TO leaf;
    ALTER TABLE search_state RENAME COLUMN piece TO chunk;
    UPDATE setting SET value = replace(value, 'imise"', 'imize"') WHERE name = 'direction';
    UPDATE setting SET value = '"custom"' WHERE name = 'search' AND value = '"given"';
    UPDATE note SET value = replace(value, '"trials": {"told": ', '"trials": {"complete": ')
        WHERE name = 'result'
    """,
    "ALTER TABLE trial ADD COLUMN noise REAL",  # variance of the value; NULL if not known
)
