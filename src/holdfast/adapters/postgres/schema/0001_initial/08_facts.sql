-- What decisions of the client look at. Rows are found by index, as in apply(), and nothing stays
-- locked.

-- A run in the order of RunFacts, without what may be large.
CREATE FUNCTION run_facts(r all_runs) RETURNS json
LANGUAGE sql IMMUTABLE AS $$
    SELECT json_build_array(
        r.id, r.tenant, r.pipeline, r.lane, r.state, r.seq, r.priority, r.key, r.fingerprint,
        r.is_unique, r.parent, r.inherits, r.created, r.labels, r.attributes, r.epoch, r.attempts,
        r.attempt_limit, r.worker, r.lease_until, r.lease_ttl, r.available, r.due, r.delay,
        r.started, r.finished, r.error, r.reason, r.holds_lane, r.events)
$$;

-- The facts named in `needs` (see `Needs` in adapters/decisions.py), and the present. The clock is
-- read in here, after the snapshot was taken: by an earlier time, a lease that is renewed meanwhile
-- would end later than it can. `mono` is passed only by tests that move the clock.
CREATE FUNCTION facts(needs jsonb, mono double precision) RETURNS json
LANGUAGE sql
SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off
AS $$
    WITH slot AS MATERIALIZED (
        SELECT o.tenant, o.pipeline, o.id FROM jsonb_array_elements(needs->'slots') AS s
        JOIN open_runs o ON o.is_unique AND o.tenant = s->>0 AND o.pipeline = s->>1
                        AND o.state IN ('queued', 'running', 'paused')
        UNION
        SELECT o.tenant, o.pipeline, o.id
        FROM jsonb_array_elements_text(needs->'runs') AS run (id), LATERAL (
            SELECT m.tenant, m.pipeline FROM open_runs m
            WHERE m.id = run.id AND coalesce(m.is_unique) OFFSET 0) AS own, LATERAL (
            SELECT * FROM open_runs u
            WHERE u.is_unique AND u.tenant = own.tenant AND u.pipeline = own.pipeline
              AND u.state IN ('queued', 'running', 'paused') OFFSET 0) AS o
    ), named AS MATERIALIZED (
        SELECT q.tenant, q.key, q.id FROM jsonb_array_elements(needs->'keys') AS k
        JOIN requests q ON q.tenant = k->>0 AND q.key = k->>1
    ), run_ids AS MATERIALIZED (
        SELECT jsonb_array_elements_text(needs->'runs') AS id
        UNION SELECT id FROM slot UNION SELECT id FROM named
    )
    SELECT json_build_object(
        'now', coalesce(mono, extract(epoch FROM clock_timestamp())),
        'runs', ARRAY(SELECT run_facts(r) FROM run_ids w, LATERAL (
            SELECT * FROM all_runs a WHERE a.id = w.id OFFSET 0) AS r),
        'keys', ARRAY(SELECT json_build_array(tenant, key, id) FROM named),
        'slots', ARRAY(SELECT json_build_array(tenant, pipeline, id) FROM slot),
        'lanes', ARRAY(SELECT to_json(l) FROM lanes l WHERE name > ''),
        'locks', ARRAY(SELECT to_json(k) FROM jsonb_array_elements_text(needs->'locks') AS l (name)
            JOIN locks k ON k.name = l.name),
        'letters', ARRAY(SELECT json_build_object('id', d.id, 'run', run, 'closed', closed)
            FROM jsonb_array_elements_text(needs->'letters') AS l (id)
            JOIN dead_letters d ON d.id = l.id),
        'checkpoints', ARRAY(SELECT json_build_array(run, step, key, epoch)
            FROM jsonb_array_elements(needs->'checkpoints') AS w
            JOIN checkpoints c ON c.run = w->>0 AND c.step = w->>1 AND c.key = w->>2),
        'quarantined', ARRAY(SELECT json_build_array(q.run, q.step, count(*))
            FROM jsonb_array_elements(needs->'checkpoints') AS w
            JOIN quarantine q ON q.run = w->>0 AND q.step = w->>1
            GROUP BY q.run, q.step, w),
        'records', ARRAY(SELECT to_json(r)
            FROM jsonb_array_elements_text(needs->'records') AS l (key)
            JOIN records r ON r.key = l.key))
$$;

-- Here and below, what somebody has locked is passed over.
CREATE FUNCTION ended_leases(most bigint, mono double precision) RETURNS json
LANGUAGE sql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
    SELECT to_json(ARRAY(
        SELECT id FROM open_runs
        WHERE state = 'running' AND NOT lasts(lease_until, lease_ttl, mono)
        ORDER BY lease_until, seq LIMIT most
        FOR NO KEY UPDATE SKIP LOCKED))
$$;

-- `sent` is the position up to which events were sent; below 0: nobody sends any.
CREATE FUNCTION expired(keep double precision, keep_failed double precision, sent bigint,
                        most bigint, wall double precision) RETURNS json
LANGUAGE sql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
    WITH succeeded AS (
        SELECT s.id, s.finished FROM results s
        WHERE sent < 0 OR s.position <= sent ORDER BY s.position LIMIT most
        FOR UPDATE SKIP LOCKED
    ), others AS (
        SELECT o.id, o.finished, o.seq FROM open_runs o
        WHERE o.state IN ('failed', 'cancelled') AND NOT o.holds_lane
          AND o.finished <= wall - CASE WHEN o.state = 'failed' THEN keep_failed ELSE keep END
          AND NOT (sent >= 0 AND EXISTS (
              SELECT FROM events e WHERE e.run = o.id AND e.position > sent))
        ORDER BY o.finished LIMIT most
        FOR UPDATE SKIP LOCKED
    ), old AS (
        SELECT id, finished, (SELECT q.seq FROM requests q WHERE q.id = s.id) AS seq
        FROM succeeded s WHERE finished <= wall - keep
        UNION ALL
        SELECT * FROM others
    )
    SELECT to_json(ARRAY(SELECT id FROM old ORDER BY finished, seq LIMIT most))
$$;
