-- What is stored. The other files of this folder are the functions that write it, and the views.
--
-- Names are unqualified: a migration runs with the store's own schema as its search_path. Times are
-- seconds since 1970 by the server's clock. The views for people show them as timestamps.
-- Identifiers compare byte by byte (COLLATE "C"): the same order everywhere, and indexes that find
-- prefixes. Text in `input`, `result` and `value` is JSON, or `@blob:<key>` for what was moved to
-- the blob store; JSON is kept as text, byte for byte. U+0000, which PostgreSQL can't store, is
-- kept as U+FFFF followed by 0 (and U+FFFF as U+FFFF 1).

-- The order of acceptance and of the outbox; see reserve_positions(). By two: a run that succeeds
-- has two events to number. Whatever it numbers is unique: the indexes need not check that.
CREATE SEQUENCE positions INCREMENT BY 2;

CREATE TABLE meta (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);

-- A run is in three tables, because PostgreSQL writes a row anew, in every index, whenever it
-- changes: what was asked is written once; what changes is in a small table that a run leaves when
-- it has succeeded; then its result is written once. The view `runs` puts them together.
--
-- For the same reason an event has a row of its own only if no other row says it: a request says
-- that its run was queued, a checkpoint that its step completed, a result that the run completed
-- and which step came last. The views `all_events` and `all_checkpoints` put them together.

CREATE TABLE requests (
    seq         bigint NOT NULL,                  -- also the position of `run.queued`, its event 1
    id          text COLLATE "C" PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    pipeline    text COLLATE "C" NOT NULL,
    lane        text COLLATE "C" NOT NULL,
    priority    bigint NOT NULL,
    is_unique   boolean NOT NULL,
    inherits    boolean NOT NULL,                 -- begins with checkpoints of its parent
    created     double precision NOT NULL,
    key         text COLLATE "C",
    parent      text COLLATE "C",
    labels      text,                             -- JSON, NULL for none; so are the attributes
    attributes  text,
    fingerprint text NOT NULL,
    input       text NOT NULL
);
CREATE INDEX requests_seq ON requests (seq);
CREATE INDEX requests_tenant ON requests (tenant, seq);
CREATE INDEX requests_pipeline ON requests (pipeline, seq);
CREATE UNIQUE INDEX requests_key ON requests (tenant, key) WHERE key IS NOT NULL;

CREATE TABLE labels (
    tenant text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    value  text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,                       -- that of the run
    PRIMARY KEY (tenant, name, value, seq)
);

CREATE TABLE open_runs (                          -- all that has not succeeded
    id            text COLLATE "C" PRIMARY KEY,
    seq           bigint NOT NULL,
    tenant        text COLLATE "C" NOT NULL,
    pipeline      text COLLATE "C" NOT NULL,
    lane          text COLLATE "C" NOT NULL,
    state         text COLLATE "C" NOT NULL DEFAULT 'queued',
    priority      bigint NOT NULL,
    size          bigint NOT NULL,                -- of the input, in bytes
    epoch         bigint NOT NULL DEFAULT 0,
    events        bigint NOT NULL DEFAULT 1,      -- the number of the last one
    attempts      bigint NOT NULL DEFAULT 0,
    attempt_limit bigint NOT NULL,
    lease_until   double precision,
    lease_ttl     double precision NOT NULL DEFAULT 0,
    available     double precision,               -- NULL: now; shown to people
    due           double precision,               -- the same moment on the clock that counts
    delay         double precision NOT NULL DEFAULT 0,
    started       double precision,
    finished      double precision,
    is_unique     boolean NOT NULL,
    holds_lane    boolean NOT NULL DEFAULT false, -- failed head of a fifo lane with policy 'block'
    worker        text,
    reason        text,
    error         text,
    progress      text NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.1);

-- lease_until is in no index: renewing a lease does not write any.
CREATE UNIQUE INDEX open_unique ON open_runs (tenant, pipeline)
    WHERE is_unique AND state IN ('queued', 'running', 'paused');
CREATE INDEX open_ready ON open_runs (lane, tenant, priority DESC, seq)
    WHERE state = 'queued' AND due IS NULL;
CREATE INDEX open_delayed ON open_runs (due) WHERE state = 'queued' AND due IS NOT NULL;
CREATE INDEX open_queued ON open_runs (lane, seq) WHERE state = 'queued';
CREATE INDEX open_running ON open_runs (tenant, lane) WHERE state = 'running';
CREATE INDEX open_blocked ON open_runs (lane, seq) WHERE holds_lane;
CREATE INDEX open_by_state ON open_runs (state, seq)
    WHERE state IN ('paused', 'failed', 'cancelled');

CREATE TABLE results (                            -- of runs that succeeded
    id            text COLLATE "C" PRIMARY KEY,
    position      bigint NOT NULL DEFAULT nextval('positions'),  -- the last step's is one lower
    events        bigint NOT NULL,                -- the number of `run.completed`
    epoch         bigint NOT NULL,
    attempts      bigint NOT NULL,
    attempt_limit bigint NOT NULL,
    started       double precision NOT NULL,
    finished      double precision NOT NULL,
    worker        text,
    execution_ms  bigint NOT NULL,
    progress      text NOT NULL,
    result        text,
    result_checksum text,
    -- The checkpoint of the step that came last, unless it was stored before; then all are NULL.
    step          text COLLATE "C",
    skipped       boolean,
    value         text,                           -- NULL: the result itself
    checksum      text,
    schema        text,
    fingerprint   text,
    record        text
);
CREATE INDEX results_position ON results (position);

CREATE TABLE checkpoints (
    run         text COLLATE "C" NOT NULL,
    step        text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,        -- '' for the step itself
    epoch       bigint NOT NULL,
    value       text NOT NULL,
    checksum    text NOT NULL,
    schema      text NOT NULL,
    fingerprint text NOT NULL,
    record      text NOT NULL,
    event       bigint,                           -- the number of its event; NULL: it has none here
    position    bigint,
    at          double precision,
    skipped     boolean,
    PRIMARY KEY (run, key, step)                  -- the steps of a run are found without its items
);
CREATE INDEX checkpoints_position ON checkpoints (position) WHERE position IS NOT NULL;

CREATE TABLE quarantine (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run    text COLLATE "C" NOT NULL,
    step   text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    value  text,
    at     double precision NOT NULL
);
CREATE INDEX quarantine_run ON quarantine (run, step);

CREATE TABLE events (                             -- those that no other row says
    position bigint NOT NULL DEFAULT nextval('positions'),
    run      text COLLATE "C" NOT NULL,           -- or a message's dead letter
    seq      bigint NOT NULL,                     -- 2 is a run's first: 1 is `run.queued`
    type     text NOT NULL,
    at       double precision NOT NULL,
    data     text NOT NULL,
    PRIMARY KEY (run, seq)
);
CREATE INDEX events_position ON events (position);

CREATE TABLE logs (
    run     text COLLATE "C" NOT NULL,
    n       bigint NOT NULL,                      -- 1 is the first line of the run
    at      double precision NOT NULL,
    level   text NOT NULL,
    step    text NOT NULL,
    message text NOT NULL,
    fields  text NOT NULL,
    PRIMARY KEY (run, n)
);

CREATE TABLE lanes (
    name    text COLLATE "C" PRIMARY KEY,
    "order" text NOT NULL,                        -- 'parallel' or 'fifo'
    head    text NOT NULL
);

CREATE TABLE tenants (
    tenant  text COLLATE "C" PRIMARY KEY,
    running bigint NOT NULL                       -- how many runs may run at once
);

CREATE TABLE records (
    key         text COLLATE "C" PRIMARY KEY,
    value       text NOT NULL,
    version     text NOT NULL,
    updated     double precision NOT NULL,
    lease_until double precision,                 -- NULL: it does not expire
    lease_ttl   double precision NOT NULL
);

CREATE TABLE locks (
    name        text COLLATE "C" PRIMARY KEY,
    epoch       bigint NOT NULL,
    token       text,                             -- NULL: free
    owner       text NOT NULL DEFAULT '',
    acquired    double precision,
    lease_until double precision,
    lease_ttl   double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE dead_letters (
    id         text COLLATE "C" PRIMARY KEY,
    source     text NOT NULL,
    reason     text NOT NULL,
    body       bytea,                             -- NULL: the input of the run
    attributes text NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    run        text COLLATE "C",
    created    double precision NOT NULL,
    closed     double precision,
    resolution text
);
CREATE INDEX dead_letters_open ON dead_letters (created, id) WHERE closed IS NULL;
CREATE INDEX dead_letters_tenant ON dead_letters (tenant, created, id);

CREATE TABLE audit (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     double precision NOT NULL,
    actor  text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    reason text NOT NULL
);

-- Every event and every checkpoint, whichever table says it.

CREATE FUNCTION step_event(skipped boolean) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN skipped THEN 'step.skipped' ELSE 'step.completed' END
$$;

CREATE FUNCTION final_events(s results)
RETURNS TABLE ("position" bigint, seq bigint, type text, data text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT f.* FROM (VALUES
        (s.position - 1, s.events - 1,  -- not step_event(): readers may have another search_path
         CASE WHEN s.skipped THEN 'step.skipped' ELSE 'step.completed' END, s.record),
        (s.position, s.events, 'run.completed', '{"attempt":' || s.attempts
         || ',"execution_time_ms":' || s.execution_ms || '}')) AS f (position, seq, type, data)
    WHERE f.data IS NOT NULL
$$;

CREATE VIEW all_events AS
SELECT position, run, seq, type, at, data FROM events
UNION ALL
SELECT seq, id, 1, 'run.queued', created, '{}' FROM requests
UNION ALL
SELECT position, run, event, step_event(skipped), at, record FROM checkpoints
WHERE key = '' AND event IS NOT NULL
UNION ALL
SELECT f.position, s.id, f.seq, f.type, s.finished, f.data FROM results s, final_events(s) AS f;

CREATE VIEW all_checkpoints AS
SELECT run, step, key, value, checksum, schema, fingerprint, record, epoch FROM checkpoints
UNION ALL
SELECT id, step, '', coalesce(value, result), checksum, schema, fingerprint, record, epoch
FROM results WHERE step IS NOT NULL;

-- Every run, in the order of RunFacts; what may be large comes last.
CREATE VIEW all_runs AS
SELECT q.id, q.tenant, q.pipeline, q.lane, coalesce(o.state, 'succeeded') AS state, q.seq,
       q.priority, q.key, q.fingerprint, q.is_unique, q.parent, q.inherits, q.created, q.labels,
       q.attributes, coalesce(o.epoch, s.epoch) AS epoch,
       coalesce(o.attempts, s.attempts) AS attempts,
       coalesce(o.attempt_limit, s.attempt_limit) AS attempt_limit,
       coalesce(o.worker, s.worker) AS worker, o.lease_until, coalesce(o.lease_ttl, 0) AS lease_ttl,
       o.available, o.due, coalesce(o.delay, 0) AS delay, coalesce(o.started, s.started) AS started,
       coalesce(o.finished, s.finished) AS finished, o.error, o.reason,
       coalesce(o.holds_lane, false) AS holds_lane, coalesce(o.events, s.events) AS events,
       q.input, coalesce(o.progress, s.progress) AS progress, s.result,
       s.result_checksum
FROM requests q LEFT JOIN open_runs o ON o.id = q.id LEFT JOIN results s ON s.id = q.id;
