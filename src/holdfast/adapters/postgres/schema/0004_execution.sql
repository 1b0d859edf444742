-- What a worker does with a run: claim, renew, checkpoint. All of it fenced.
--
-- The fence, everywhere the same: the run is `running`, its epoch is the given one, and its lease has not ended. A
-- lease that ends later than any lease can was granted by a clock that has since been set back: it has ended, too.
-- The rows of all runs that a batch names were locked by lock_rows() before anything else, so what a statement finds
-- stays as it is until the next one.
--
-- Plans are made once per session, perhaps on an empty table, and must still be right when it has a million rows. So the
-- order of work is fixed: for each element a LATERAL lookup by id (OFFSET 0 keeps it one), then an UPDATE by ctid. And
-- coalesce(state) hides the state from the planner, or it would look through all running runs for each element.

-- Lease up to `limit` runs: by priority, then in the order of acceptance. Runs that somebody else has locked are
-- passed over. Answers the claimed runs, as arrays in the order of `Claimed`.
--
-- Most claims of an idle system find nothing. They write nothing, too, so that their commit costs nothing.
CREATE FUNCTION claim(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    of_lane text := given->>'lane';
    pipelines jsonb := given->'pipelines';
    is_due boolean;
    is_fifo boolean;
    head text;
    chosen tid[];
    sizes bigint[];
    total numeric;
    reserved boolean;
BEGIN
    SELECT EXISTS (SELECT FROM open_runs WHERE state = 'queued' AND due <= mono),
           EXISTS (SELECT FROM lanes WHERE name = of_lane AND sort = 'fifo')
    INTO is_due, is_fifo;
    IF is_due THEN
        PERFORM promote_delayed(mono);
    END IF;
    IF is_fifo THEN
        head := fifo_head(given, mono);
        IF head IS NULL THEN
            RETURN '[]';
        END IF;
    END IF;
    SELECT array_agg(tid), array_agg(size), sum(size) INTO chosen, sizes, total FROM (  -- in the order of what is found
        SELECT ctid AS tid, size FROM open_runs
        WHERE lane = of_lane AND state = 'queued' AND due IS NULL
          AND pipelines ? pipeline AND (head IS NULL OR id = head)
        ORDER BY priority DESC, seq
        LIMIT (given->>'limit')::bigint
        FOR NO KEY UPDATE SKIP LOCKED) AS found;
    IF chosen IS NULL THEN
        RETURN '[]';
    END IF;
    WHILE total > (given->>'max_bytes')::numeric AND cardinality(chosen) > 1 LOOP
        total := total - sizes[cardinality(chosen)];
        chosen := chosen[: cardinality(chosen) - 1];
    END LOOP;
    reserved := reserve_positions();
    IF cardinality(chosen) = 1 THEN
        RETURN lease_one(chosen[1], given->>'worker', span((given->>'ttl')::double precision), wall, mono);
    END IF;
    RETURN lease(chosen, given->>'worker', span((given->>'ttl')::double precision), wall, mono);
END $$;

-- Give these rows, which are queued and locked, to a worker. Answers them as `claim` does.
CREATE FUNCTION lease(chosen tid[], by_worker text, ttl interval, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    worker_name text := quoted(by_worker);
    answer text;
BEGIN
    WITH leased AS (
        UPDATE open_runs r SET state = 'running', epoch = r.epoch + 1, attempts = r.attempts + 1, worker = by_worker,
                          lease_until = mono + ttl, lease_ttl = ttl, started = coalesce(r.started, wall), reason = NULL,
                          events = r.events + 1
        FROM unnest(chosen) WITH ORDINALITY AS c (tid, n) WHERE r.ctid = c.tid
        RETURNING c.n, r.id, r.tenant, r.pipeline, r.lane, r.epoch, r.attempts, r.attempt_limit, r.progress,
                  r.events
    ), told AS (
        INSERT INTO events (run, seq, type, at, data)
        SELECT id, events, 'run.started', wall,
               '{"attempt":' || attempts || ',"worker":' || worker_name || ',"epoch":' || epoch || '}'
        FROM leased ORDER BY n
    )
    SELECT json_agg(json_build_array(id, tenant, pipeline, lane, epoch, attempts, attempt_limit, input, progress,
                                     epoch > 1 OR inherits) ORDER BY n)
    INTO answer FROM leased l, LATERAL (SELECT q.input, q.inherits FROM requests q WHERE q.id = l.id OFFSET 0) AS asked;
    RETURN answer;
END $$;

-- Delays that are over: from now on these runs are found by the index of those that are ready.
CREATE FUNCTION promote_delayed(mono timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE open_runs SET due = NULL, available = NULL WHERE id IN (
        SELECT id FROM open_runs WHERE state = 'queued' AND due <= mono ORDER BY due LIMIT 1000
        FOR NO KEY UPDATE SKIP LOCKED);
END $$;

-- The only run that the leader of a fifo lane may claim now, or NULL. The row of the lane's lock is locked, so terms
-- and claims of the lane follow one another.
CREATE FUNCTION fifo_head(given jsonb, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF (given->>'limit')::bigint < 1 THEN
        RETURN NULL;
    END IF;
    IF NOT EXISTS (SELECT FROM locks WHERE name = 'lane:' || (given->>'lane') AND token = given->>'token'
                   AND epoch = (given->>'term')::bigint AND lease_until > mono AND lease_until <= mono + lease_ttl) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM open_runs WHERE lane = given->>'lane' AND (state = 'running' OR holds_lane)) THEN
        RETURN NULL;
    END IF;
    RETURN (
        WITH RECURSIVE firsts (priority, seq, id) AS (  -- of each priority, which means nothing here
            (SELECT priority, seq, id FROM open_runs WHERE lane = given->>'lane' AND state = 'queued' AND due IS NULL
             ORDER BY priority DESC, seq LIMIT 1)
            UNION ALL
            SELECT lower.* FROM firsts f, LATERAL (
                SELECT r.priority, r.seq, r.id FROM open_runs r
                WHERE r.lane = given->>'lane' AND r.state = 'queued' AND r.due IS NULL AND r.priority < f.priority
                ORDER BY r.priority DESC, r.seq LIMIT 1) AS lower
        ), later AS (
            SELECT seq, id FROM open_runs WHERE lane = given->>'lane' AND state = 'queued' AND due IS NOT NULL
            ORDER BY seq LIMIT 1
        )
        SELECT id FROM (SELECT seq, id FROM firsts UNION ALL SELECT seq, id FROM later) AS heads ORDER BY seq LIMIT 1
    );
END $$;

-- Extend leases that are still held: elements of `given` are [run, epoch]. Answers the places of the lost ones.
CREATE FUNCTION renew(given jsonb, ttl double precision, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    accepted bigint[];
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT n, c->>0 AS run, (c->>1)::bigint AS epoch
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
    ), kept AS MATERIALIZED (
        SELECT a.n, fence.tid FROM asked a, LATERAL (
            SELECT r.ctid AS tid FROM open_runs r WHERE r.id = a.run AND r.epoch = a.epoch AND coalesce(r.state) = 'running'
               AND r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl OFFSET 0) AS fence
    ), extended AS (
        UPDATE open_runs r SET lease_until = greatest(r.lease_until, mono + span(ttl)),
                          lease_ttl = greatest(r.lease_ttl, span(ttl))
        FROM (SELECT DISTINCT tid FROM kept) AS k WHERE r.ctid = k.tid
    )
    SELECT array_agg(n) INTO accepted FROM kept;
    IF cardinality(accepted) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN places_without(jsonb_array_length(given), accepted);
END $$;

-- Store results of steps and items; no two of one group are for the same (run, step, key). Elements of `given`:
--   0 run, 1 epoch, 2 step, 3 key, 4 value, 5 checksum, 6 schema, 7 fingerprint, 8 record, 9 skipped
-- Answers the places of the stale ones.
CREATE FUNCTION save_checkpoints(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    accepted bigint[];
    repeated boolean;
    reserved boolean;
BEGIN
    IF jsonb_array_length(given) = 1 THEN
        RETURN save_one(given->0, wall, mono);
    END IF;
    reserved := reserve_positions();
    WITH held AS MATERIALIZED (
        SELECT n, c, fence.tid, fence.events AS before, old.tid IS NOT NULL AS is_there
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n), LATERAL (
            SELECT r.ctid AS tid, r.events FROM open_runs r
            WHERE r.id = c->>0 AND r.epoch = (c->>1)::bigint AND coalesce(r.state) = 'running'
              AND r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl OFFSET 0) AS fence
        LEFT JOIN LATERAL (
            SELECT p.ctid AS tid FROM checkpoints p
            WHERE p.run = c->>0 AND p.step = c->>2 AND p.key = c->>3 OFFSET 0) AS old ON true
    ), fresh AS (
        SELECT tid, c, CASE WHEN is_step THEN before + row_number() OVER (PARTITION BY tid, is_step ORDER BY n) END AS event
        FROM (SELECT *, c->>3 = '' AS is_step FROM held) AS h WHERE NOT EXISTS (SELECT FROM held WHERE is_there)
    ), counted AS (
        UPDATE open_runs r SET events = told.last
        FROM (SELECT tid, max(event) AS last FROM fresh WHERE event IS NOT NULL GROUP BY tid) AS told WHERE r.ctid = told.tid
    ), saved AS (
        INSERT INTO checkpoints (run, step, key, epoch, value, checksum, schema, fingerprint, record, event, position, at,
                                 skipped)
        SELECT c->>0, c->>2, c->>3, (c->>1)::bigint, c->>4, c->>5, c->>6, c->>7, c->>8, event,
               CASE WHEN event IS NOT NULL THEN nextval('positions') END, wall, (c->>9)::boolean
        FROM fresh
    )
    SELECT array_agg(n), bool_or(is_there) INTO accepted, repeated FROM held;
    IF repeated THEN
        PERFORM save_checkpoint(given->(n - 1)::integer, wall) FROM unnest(accepted) AS n;
    END IF;
    IF cardinality(accepted) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN places_without(jsonb_array_length(given), accepted);
END $$;

-- The same for one of a group in which some are there already, of an earlier attempt or of the same request: the new ones
-- count. A step writes one event per attempt, so a repeated request writes none.
CREATE FUNCTION save_checkpoint(c jsonb, wall timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    old checkpoints := take_checkpoint(c->>0, c->>2, c->>3);
    number bigint;
BEGIN
    IF c->>3 = '' AND old.epoch IS DISTINCT FROM (c->>1)::bigint THEN
        number := next_event(c->>0);
    END IF;
    INSERT INTO checkpoints (run, step, key, epoch, value, checksum, schema, fingerprint, record, event, position, at, skipped)
    VALUES (c->>0, c->>2, c->>3, (c->>1)::bigint, c->>4, c->>5, c->>6, c->>7, c->>8, number,
            CASE WHEN number IS NOT NULL THEN nextval('positions') END, wall, (c->>9)::boolean);
END $$;

-- Take a checkpoint away. Its event stays: it gets a row of its own.
CREATE FUNCTION take_checkpoint(of_run text, of_step text, of_key text) RETURNS checkpoints
LANGUAGE plpgsql AS $$
DECLARE
    gone checkpoints;
BEGIN
    DELETE FROM checkpoints WHERE run = of_run AND step = of_step AND key = of_key RETURNING * INTO gone;
    IF gone.event IS NOT NULL THEN
        INSERT INTO events (position, run, seq, type, at, data)
        VALUES (gone.position, gone.run, gone.event, step_event(gone.skipped), gone.at, gone.record);
    END IF;
    RETURN gone;
END $$;

-- Elements of `given`: 0 run, 1 epoch, 2 progress; each run once. Answers the places of the stale ones.
CREATE FUNCTION save_progress(given jsonb, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    accepted bigint[];
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT n, c->>0 AS run, (c->>1)::bigint AS epoch, c->>2 AS progress
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
    ), held AS MATERIALIZED (
        SELECT a.n, a.progress, fence.tid FROM asked a, LATERAL (
            SELECT r.ctid AS tid FROM open_runs r WHERE r.id = a.run AND r.epoch = a.epoch AND coalesce(r.state) = 'running'
               AND r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl OFFSET 0) AS fence
    ), saved AS (
        UPDATE open_runs r SET progress = h.progress FROM held h WHERE r.ctid = h.tid
    )
    SELECT array_agg(n) INTO accepted FROM held;
    IF cardinality(accepted) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN places_without(jsonb_array_length(given), accepted);
END $$;

-- Append to the logs of runs, up to `most` lines each. Elements of `given`:
--   0 run, 1 epoch, 2 level, 3 step, 4 message, 5 fields
-- Answers the places of the stale ones.
CREATE FUNCTION append_logs(given jsonb, most bigint, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    accepted bigint[];
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT n, c->>0 AS run, (c->>1)::bigint AS epoch, c
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
    ), held AS MATERIALIZED (
        SELECT a.* FROM asked a, LATERAL (
            SELECT r.ctid AS tid FROM open_runs r WHERE r.id = a.run AND r.epoch = a.epoch AND coalesce(r.state) = 'running'
               AND r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl OFFSET 0) AS fence
    ), numbered AS (
        SELECT h.*, (SELECT coalesce(max(l.n), 0) FROM logs l WHERE l.run = h.run)
                    + row_number() OVER (PARTITION BY h.run ORDER BY h.n) AS line
        FROM held h
    ), written AS (
        INSERT INTO logs (run, n, at, level, step, message, fields)
        SELECT run, line, wall, c->>2, c->>3, c->>4, c->>5 FROM numbered WHERE line <= most
        ORDER BY run, line  -- all are numbered before the first is written: the index is not searched among its own
    )
    SELECT array_agg(n) INTO accepted FROM held;
    IF cardinality(accepted) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN places_without(jsonb_array_length(given), accepted);
END $$;

-- Take a bad checkpoint out of use and keep it aside. Answers how many of its step's were, so far, or null if stale.
CREATE FUNCTION put_aside(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    bad checkpoints;
BEGIN
    IF NOT holds(given->>'run', (given->>'epoch')::bigint, mono) THEN
        RETURN 'null';
    END IF;
    bad := take_checkpoint(given->>'run', given->>'step', given->>'key');
    IF bad.run IS NOT NULL THEN
        INSERT INTO quarantine (run, step, key, reason, value, at)
        VALUES (bad.run, bad.step, bad.key, given->>'reason', bad.value, wall);
        PERFORM append_event(bad.run, 'checkpoint.quarantined', wall, '{"step":' || quoted(bad.step) || ',"key":'
                             || quoted(bad.key) || ',"reason":' || quoted(given->>'reason') || '}');
    END IF;
    RETURN (SELECT count(*) FROM quarantine WHERE run = given->>'run' AND step = given->>'step');
END $$;

CREATE FUNCTION holds(of_run text, of_epoch bigint, mono timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT FROM open_runs r WHERE r.id = of_run AND r.epoch = of_epoch AND r.state = 'running'
                   AND r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl);
END $$;
