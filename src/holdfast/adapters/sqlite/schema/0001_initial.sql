-- The first schema. Times are seconds: `lease_until` and `due` on the host's monotonic clock, all others wall time.
-- Text in `input`, `result` and `value` is JSON, or `@blob:<key>` for what was moved to the blob store.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE runs (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of acceptance
    id            TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    pipeline      TEXT NOT NULL,
    lane          TEXT NOT NULL,
    state         TEXT NOT NULL DEFAULT 'queued',
    priority      INTEGER NOT NULL DEFAULT 0,
    key           TEXT,
    fingerprint   TEXT NOT NULL,
    is_unique     INTEGER NOT NULL DEFAULT 0,
    parent        TEXT,
    epoch         INTEGER NOT NULL DEFAULT 0,
    attempts      INTEGER NOT NULL DEFAULT 0,
    attempt_limit INTEGER NOT NULL,
    worker        TEXT,
    lease_until   REAL,
    lease_ttl     REAL,
    created       REAL NOT NULL,
    available     REAL,                               -- NULL: now; shown to people
    due           REAL,                               -- the same moment on the monotonic clock: what counts
    delay         REAL,
    started       REAL,
    finished      REAL,
    input         TEXT NOT NULL,
    result        TEXT,
    error         TEXT,
    reason        TEXT,
    progress      TEXT NOT NULL DEFAULT '{}',
    inherited     INTEGER NOT NULL DEFAULT 0,         -- began with checkpoints of its parent
    holds_lane    INTEGER NOT NULL DEFAULT 0          -- failed head of a fifo lane with policy 'block'
);

CREATE UNIQUE INDEX runs_key ON runs (tenant, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX runs_live ON runs (tenant, pipeline)
    WHERE is_unique AND state IN ('queued', 'running', 'paused');
CREATE INDEX runs_ready ON runs (lane, priority DESC, seq) WHERE state = 'queued' AND available IS NULL;
CREATE INDEX runs_delayed ON runs (due) WHERE state = 'queued' AND available IS NOT NULL;
CREATE INDEX runs_waiting ON runs (lane, seq) WHERE state = 'queued';
CREATE INDEX runs_active ON runs (lane) WHERE state = 'running' OR holds_lane;
CREATE INDEX runs_leased ON runs (lease_until) WHERE state = 'running';
CREATE INDEX runs_finished ON runs (finished) WHERE finished IS NOT NULL;

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
    -- Order of commit: what the relay follows. Not AUTOINCREMENT, which would write one page more in every commit;
    -- instead pruning leaves a placeholder at the highest number, so that none is given out twice.
    position INTEGER PRIMARY KEY,
    run      TEXT NOT NULL,
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
    name  TEXT PRIMARY KEY,
    sort  TEXT NOT NULL,                              -- 'parallel' or 'fifo'
    head  TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE locks (
    name        TEXT PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    token       TEXT,                                 -- NULL: free
    owner       TEXT,
    acquired    REAL,
    lease_until REAL,
    lease_ttl   REAL
) WITHOUT ROWID;

CREATE TABLE dead_letters (
    id         TEXT PRIMARY KEY,
    source     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    body       BLOB NOT NULL,
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
