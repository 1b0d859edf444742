-- Ending an attempt: outcome, last checkpoint, event and the end of the lease together.

-- Attempts that succeeded; each run once. Elements of `given` are Settles:
--   0 run, 1 epoch, 3 result, 7 progress, 8 last (a SaveCheckpoint as in save_checkpoints, or null)
-- Answers the places of the stale ones.
CREATE FUNCTION succeed(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    accepted bigint[];
    known bigint[];  -- whose last checkpoint is not just a new one
    reserved boolean;
BEGIN
    IF jsonb_array_length(given) = 1 THEN
        RETURN succeed_one(given->0, wall, mono);
    END IF;
    reserved := reserve_positions();
    WITH held AS MATERIALIZED (
        SELECT n, c, nullif(c->8, 'null') AS p, r.*, (old.tid IS NOT NULL OR c->8->>3 <> '') IS TRUE AS is_known
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n), LATERAL (
            SELECT r.ctid AS tid, r.events, r.attempts, r.attempt_limit, r.started, r.worker FROM open_runs r
            WHERE r.id = c->>0 AND r.epoch = (c->>1)::bigint AND coalesce(r.state) = 'running'
              AND r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl OFFSET 0) AS r
        LEFT JOIN LATERAL (
            SELECT s.ctid AS tid FROM checkpoints s
            WHERE s.run = c->>0 AND s.step = c->8->>2 AND s.key = c->8->>3 OFFSET 0) AS old ON true
    ), closed AS (
        DELETE FROM open_runs o USING (SELECT tid FROM held WHERE NOT is_known) AS ended WHERE o.ctid = ended.tid
    ), done AS (
        INSERT INTO results (id, events, epoch, attempts, attempt_limit, started, finished, worker, progress, result,
                             step, skipped, value, checksum, schema, fingerprint, record)
        SELECT c->>0, events + CASE WHEN p IS NULL THEN 1 ELSE 2 END, (c->>1)::bigint, attempts, attempt_limit, started,
               wall, worker, c->>7, c->>3, p->>2, (p->>9)::boolean, nullif(p->>4, c->>3), p->>5, p->>6, p->>7, p->>8
        FROM held WHERE NOT is_known
    )
    SELECT array_agg(n) FILTER (WHERE NOT is_known), array_agg(n) FILTER (WHERE is_known) INTO accepted, known FROM held;
    IF known IS NOT NULL THEN
        PERFORM succeed_after(given->(n - 1)::integer, wall, mono) FROM unnest(known) AS n;
        accepted := accepted || known;
    END IF;
    IF cardinality(accepted) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN places_without(jsonb_array_length(given), accepted);
END $$;

-- The same for one whose last checkpoint is stored like any other first.
CREATE FUNCTION succeed_after(c jsonb, wall timestamptz, mono timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM save_checkpoints(jsonb_build_array(c->8), wall, mono);
    PERFORM succeed(jsonb_build_array(jsonb_set(c, '{8}', 'null')), wall, mono);
END $$;

-- Attempts that ended otherwise; each run once. Elements of `given` are objects with the fields of Settle and `why`: what a
-- dead letter would say. Answers the places of the stale ones.
CREATE FUNCTION end_attempts(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    c jsonb;
    n bigint;
    accepted bigint[] := '{}';
BEGIN
    FOR c, n IN SELECT * FROM jsonb_array_elements(given) WITH ORDINALITY LOOP
        IF holds(c->>'run', (c->>'epoch')::bigint, mono) THEN
            IF jsonb_typeof(c->'last') = 'array' THEN
                PERFORM save_checkpoints(jsonb_build_array(c->'last'), wall, mono);
            END IF;
            PERFORM end_attempt(c, wall, mono);
            accepted := accepted || n;
        END IF;
    END LOOP;
    IF cardinality(accepted) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN places_without(jsonb_array_length(given), accepted);
END $$;

CREATE FUNCTION end_attempt(c jsonb, wall timestamptz, mono timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    of_run text := c->>'run';
    outcome text := c->>'outcome';
    wait interval := span((c->>'delay')::double precision);
    deferred boolean := (c->>'deferred')::boolean;
    r open_runs;
BEGIN
    UPDATE open_runs SET progress = c->>'progress', error = c->>'error', lease_until = NULL WHERE id = of_run
    RETURNING * INTO r;
    IF outcome = 'retry' AND (deferred OR r.attempts < r.attempt_limit) THEN
        UPDATE open_runs SET state = 'queued', attempts = attempts - deferred::integer, delay = wait,
                        available = CASE WHEN wait > interval '0' THEN wall + wait END,
                        due = CASE WHEN wait > interval '0' THEN mono + wait END
        WHERE id = of_run;
        PERFORM append_event(of_run, 'run.retrying', wall,
                             '{"delay":' || (c->>'delay') || ',"error":' || coalesce(c->>'error', 'null') || '}');
    ELSIF outcome = 'handover' THEN
        UPDATE open_runs SET state = 'queued', attempts = attempts - 1, available = NULL, due = NULL WHERE id = of_run;
        PERFORM append_event(of_run, 'run.handed_over', wall, '{}');
    ELSIF outcome = 'paused' THEN
        UPDATE open_runs SET state = 'paused', attempts = attempts - 1, reason = c->>'reason' WHERE id = of_run;
        PERFORM append_event(of_run, 'run.paused', wall, '{"reason":' || quoted(c->>'reason') || '}');
    ELSE
        PERFORM fail(of_run, c->>'error', c->>'why', wall);
    END IF;
END $$;

-- The run ends as failed: one terminal event, and one dead letter unless its lane just goes on.
CREATE FUNCTION fail(of_run text, with_error text, why text, wall timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    policy text := (SELECT l.head FROM open_runs r JOIN lanes l ON l.name = r.lane WHERE r.id = of_run AND l.sort = 'fifo');
BEGIN
    UPDATE open_runs SET state = 'failed', error = with_error, finished = wall, lease_until = NULL,
                    holds_lane = policy IS NOT DISTINCT FROM 'block'
    WHERE id = of_run;
    PERFORM append_event(of_run, 'run.failed', wall, '{"error":' || coalesce(with_error, 'null') || '}');
    IF policy IS DISTINCT FROM 'skip' THEN
        PERFORM bury_run(of_run, why, wall);
    END IF;
END $$;

-- Keep a failed run as a dead letter: once, however often it is resumed and fails again.
CREATE FUNCTION bury_run(of_run text, why text, wall timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO dead_letters (id, source, reason, body, attributes, tenant, run, created)
    SELECT 'run:' || id, 'run', why, convert_to(replace(input, U&'\FFFF' || '1', U&'\FFFF'), 'UTF8'),
           '{"pipeline":' || quoted(pipeline) || ',"attempts":"' || attempts || '"}', tenant, id, wall
    FROM (SELECT q.id, q.input, q.pipeline, q.tenant, o.attempts FROM requests q JOIN open_runs o ON o.id = q.id
          WHERE q.id = of_run) AS failed
    ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, attributes = excluded.attributes, closed = NULL,
                                   resolution = NULL;
END $$;
