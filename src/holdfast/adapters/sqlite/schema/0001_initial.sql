-- What is stored. Times are seconds: `lease_until` and `due` on the host's monotonic clock, all
-- others wall time. Text in `input`, `result` and `value` is JSON, or `@blob:<key>` for what was
-- moved to the blob store. The columns of `runs` are the fields of `RunFacts`.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE runs (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of acceptance
    id            TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    pipeline      TEXT NOT NULL,
    lane          TEXT NOT NULL,
    state         TEXT NOT NULL,
    priority      INTEGER NOT NULL,
    key           TEXT,
    fingerprint   TEXT NOT NULL,
    "unique"      INTEGER NOT NULL,
    parent        TEXT,
    inherits      INTEGER NOT NULL,
    created       REAL NOT NULL,
    labels        TEXT,
    attributes    TEXT,
    epoch         INTEGER NOT NULL,
    attempts      INTEGER NOT NULL,
    attempt_limit INTEGER NOT NULL,
    worker        TEXT,
    lease_until   REAL,
    lease_ttl     REAL NOT NULL,
    available     REAL,
    due           REAL,
    delay         REAL NOT NULL,
    started       REAL,
    finished      REAL,
    error         TEXT,
    reason        TEXT,
    holds_lane    INTEGER NOT NULL,
    events        INTEGER NOT NULL,
    input         TEXT NOT NULL,
    progress      TEXT NOT NULL,
    result        TEXT,
    result_checksum TEXT
);

CREATE UNIQUE INDEX runs_key ON runs (tenant, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX runs_live ON runs (tenant, pipeline)
    WHERE "unique" AND state IN ('queued', 'running', 'paused');
CREATE INDEX runs_ready ON runs (lane, tenant, priority DESC, seq)
    WHERE state = 'queued' AND due IS NULL;
CREATE INDEX runs_delayed ON runs (due) WHERE state = 'queued' AND due IS NOT NULL;
CREATE INDEX runs_waiting ON runs (lane, seq) WHERE state = 'queued';
CREATE INDEX runs_active ON runs (lane) WHERE state = 'running' OR holds_lane;
CREATE INDEX runs_leased ON runs (lease_until) WHERE state = 'running';
CREATE INDEX runs_finished ON runs (finished) WHERE finished IS NOT NULL;

CREATE TABLE labels (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    value  TEXT NOT NULL,
    seq    INTEGER NOT NULL,                          -- that of the run
    PRIMARY KEY (tenant, name, value, seq)
) WITHOUT ROWID;

CREATE TABLE checkpoints (
    run         TEXT NOT NULL,
    step        TEXT NOT NULL,
    key         TEXT NOT NULL,                        -- '' for the step itself
    value       TEXT NOT NULL,
    checksum    TEXT NOT NULL,
    schema      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    record      TEXT NOT NULL,
    epoch       INTEGER NOT NULL,
    PRIMARY KEY (run, step, key)
) WITHOUT ROWID;

CREATE TABLE quarantine (
    id     INTEGER PRIMARY KEY,
    run    TEXT NOT NULL,
    step   TEXT NOT NULL,
    key    TEXT NOT NULL,
    reason TEXT NOT NULL,
    value  TEXT,
    at     REAL NOT NULL
);
CREATE INDEX quarantine_run ON quarantine (run, step);

CREATE TABLE events (
    -- Order of commit: what projections follow. Not AUTOINCREMENT, which would write one page more
    -- in every commit; pruning leaves a placeholder at the highest number instead, so that none is
    -- given out twice.
    position INTEGER PRIMARY KEY,
    run      TEXT NOT NULL,                           -- or a message's dead letter
    seq      INTEGER NOT NULL,
    type     TEXT NOT NULL,
    at       REAL NOT NULL,
    data     TEXT NOT NULL
);
CREATE UNIQUE INDEX events_run ON events (run, seq);

CREATE TABLE logs (
    id      INTEGER PRIMARY KEY,
    run     TEXT NOT NULL,
    at      REAL NOT NULL,
    level   TEXT NOT NULL,
    step    TEXT NOT NULL,
    message TEXT NOT NULL,
    fields  TEXT NOT NULL
);
CREATE INDEX logs_run ON logs (run, id);

CREATE TABLE lanes (
    name    TEXT PRIMARY KEY,
    "order" TEXT NOT NULL,                            -- 'parallel' or 'fifo'
    head    TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE tenants (
    tenant  TEXT PRIMARY KEY,
    running INTEGER NOT NULL                          -- how many runs may run at once
) WITHOUT ROWID;

CREATE TABLE records (
    key         TEXT PRIMARY KEY,
    value       TEXT NOT NULL,
    version     TEXT NOT NULL,
    updated     REAL NOT NULL,
    lease_until REAL,                                 -- NULL: it does not expire
    lease_ttl   REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE locks (
    name        TEXT PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    token       TEXT,                                 -- NULL: free
    owner       TEXT NOT NULL,
    acquired    REAL,
    lease_until REAL,
    lease_ttl   REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE dead_letters (
    id         TEXT PRIMARY KEY,
    source     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    body       BLOB,                                  -- NULL: the input of the run
    attributes TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    run        TEXT,
    created    REAL NOT NULL,
    closed     REAL,
    resolution TEXT
);
CREATE INDEX dead_letters_open ON dead_letters (created) WHERE closed IS NULL;

CREATE TABLE audit (
    id     INTEGER PRIMARY KEY,
    at     REAL NOT NULL,
    actor  TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT NOT NULL
);
