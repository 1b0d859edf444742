-- The first schema: what is stored. The other files of this folder are the functions that write it.
--
-- Names are unqualified: a migration runs with the store's own schema as its search_path.
-- Times are the server's clock (`lease_until` and `due` are compared with it, all others are for people).
-- Identifiers compare byte by byte (COLLATE "C"): the same order everywhere, and indexes that find prefixes.
-- Text in `input`, `result` and `value` is JSON, or `@blob:<key>` for what was moved to the blob store. JSON is kept as
-- text, byte for byte; the views at the end of this folder show it as json.
-- U+0000, which PostgreSQL can't store, is kept as U+FFFF followed by 0 (and U+FFFF as U+FFFF 1).

CREATE SEQUENCE run_numbers;  -- order of acceptance
CREATE SEQUENCE positions;    -- order of the outbox; see reserve_positions()

CREATE TABLE meta (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);

CREATE TABLE runs (
    seq           bigint NOT NULL DEFAULT nextval('run_numbers'),
    id            text COLLATE "C" NOT NULL,
    tenant        text COLLATE "C" NOT NULL,
    pipeline      text COLLATE "C" NOT NULL,
    lane          text COLLATE "C" NOT NULL,
    state         text COLLATE "C" NOT NULL DEFAULT 'queued',
    priority      bigint NOT NULL DEFAULT 0,
    epoch         bigint NOT NULL DEFAULT 0,
    attempts      bigint NOT NULL DEFAULT 0,
    attempt_limit bigint NOT NULL,
    lease_until   timestamptz,
    lease_ttl     interval,
    created       timestamptz NOT NULL,
    available     timestamptz,                     -- NULL: now; shown to people
    due           timestamptz,                     -- the same moment on the clock that counts
    delay         interval,
    started       timestamptz,
    finished      timestamptz,
    is_unique     boolean NOT NULL DEFAULT false,
    inherited     boolean NOT NULL DEFAULT false,  -- began with checkpoints of its parent
    holds_lane    boolean NOT NULL DEFAULT false,  -- failed head of a fifo lane with policy 'block'
    key           text COLLATE "C",
    fingerprint   text NOT NULL,
    parent        text COLLATE "C",
    worker        text,
    reason        text,
    error         text,
    progress      text NOT NULL DEFAULT '{}',
    result        text,
    input         text NOT NULL,
    CONSTRAINT runs_id PRIMARY KEY (id)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- Every run is in the first three indexes for ever; in the others only while it is what they are for.
CREATE INDEX runs_seq ON runs (seq);  -- unique by its sequence, and cheaper if nobody checks
CREATE INDEX runs_tenant ON runs (tenant, seq);
CREATE UNIQUE INDEX runs_key ON runs (tenant, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX runs_live ON runs (tenant, pipeline) WHERE is_unique AND state IN ('queued', 'running', 'paused');
CREATE INDEX runs_ready ON runs (lane, priority DESC, seq) WHERE state = 'queued' AND due IS NULL;
CREATE INDEX runs_delayed ON runs (due) WHERE state = 'queued' AND due IS NOT NULL;
CREATE INDEX runs_waiting ON runs (lane, seq) WHERE state = 'queued';
CREATE INDEX runs_active ON runs (lane) WHERE state = 'running' OR holds_lane;
CREATE INDEX runs_aside ON runs (state, seq) WHERE state IN ('paused', 'failed', 'cancelled');
CREATE INDEX runs_finished ON runs (finished) WHERE finished IS NOT NULL;

CREATE TABLE checkpoints (
    run         text COLLATE "C" NOT NULL,
    step        text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,         -- '' for the step itself
    epoch       bigint NOT NULL,
    value       text NOT NULL,
    checksum    text NOT NULL,
    schema      text NOT NULL,
    fingerprint text NOT NULL,
    record      text NOT NULL,
    PRIMARY KEY (run, step, key)
);

CREATE TABLE quarantine (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run    text COLLATE "C" NOT NULL,
    step   text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    value  text,
    at     timestamptz NOT NULL
);
CREATE INDEX quarantine_run ON quarantine (run, step);

CREATE TABLE events (
    position bigint NOT NULL DEFAULT nextval('positions'),
    run      text COLLATE "C" NOT NULL,
    seq      bigint NOT NULL,
    type     text NOT NULL,
    at       timestamptz NOT NULL,
    data     text NOT NULL,
    PRIMARY KEY (run, seq)
);
CREATE UNIQUE INDEX events_position ON events (position);

CREATE TABLE logs (
    run     text COLLATE "C" NOT NULL,
    n       bigint NOT NULL,                       -- 1 is the first line of the run
    at      timestamptz NOT NULL,
    level   text NOT NULL,
    step    text NOT NULL,
    message text NOT NULL,
    fields  text NOT NULL,
    PRIMARY KEY (run, n)
);

CREATE TABLE lanes (
    name text COLLATE "C" PRIMARY KEY,
    sort text NOT NULL,                            -- 'parallel' or 'fifo'
    head text NOT NULL
);

CREATE TABLE locks (
    name        text COLLATE "C" PRIMARY KEY,
    epoch       bigint NOT NULL,
    token       text,                              -- NULL: free
    owner       text,
    acquired    timestamptz,
    lease_until timestamptz,
    lease_ttl   interval
) WITH (fillfactor = 50);

CREATE TABLE dead_letters (
    id         text COLLATE "C" PRIMARY KEY,
    source     text NOT NULL,
    reason     text NOT NULL,
    body       bytea NOT NULL,
    attributes text NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    run        text COLLATE "C",
    created    timestamptz NOT NULL,
    closed     timestamptz,
    resolution text
);
CREATE INDEX dead_letters_open ON dead_letters (created, id) WHERE closed IS NULL;
CREATE INDEX dead_letters_tenant ON dead_letters (tenant, created, id);

CREATE TABLE audit (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL,
    actor  text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    reason text NOT NULL
);
