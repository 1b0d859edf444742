-- A lone command: the only one of its batch, and one of the three that a run waits for (Submit, SaveCheckpoint, Settle).
--
-- Each of these functions does what apply() does with such a batch, in half the server's time: a few plain statements,
-- where those that can take many, and the envelope around them, cost more than the rows that are written. `c` is the
-- command as submit(), save_checkpoints() and succeed() take it, and the answer is theirs; `batch` is what apply() takes,
-- without parts and names. Whatever is not so plain goes the way of the groups.

-- A Submit that needs no unique slot and brings no checkpoints.
CREATE FUNCTION lone_submit(c jsonb, batch jsonb) RETURNS text
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    said text := begin_lone(batch);
    wall timestamptz;
BEGIN
    PERFORM FROM lanes WHERE name = c->>3 AND sort = 'fifo' FOR NO KEY UPDATE;  -- see lock_rows()
    wall := coalesce(to_timestamp((batch->>'wall')::double precision), clock_timestamp());
    RETURN submit_one(c, wall, coalesce(to_timestamp((batch->>'mono')::double precision), wall));
END $$;

CREATE FUNCTION lone_checkpoint(c jsonb, batch jsonb) RETURNS text
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    said text := begin_lone(batch);
    is_step boolean := c->>3 = '';
    wall timestamptz;
    mono timestamptz;
    reserved boolean;
    r record;
BEGIN
    SELECT ctid AS tid, events + 1 AS event, lease_until, lease_ttl INTO r FROM open_runs
    WHERE id = c->>0 AND epoch = (c->>1)::bigint AND coalesce(state) = 'running' FOR NO KEY UPDATE;
    -- Only now: who had to wait for the row must not look at its lease with the time of its arrival.
    wall := coalesce(to_timestamp((batch->>'wall')::double precision), clock_timestamp());
    mono := coalesce(to_timestamp((batch->>'mono')::double precision), wall);
    IF (r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl) IS NOT TRUE THEN
        RETURN '[0]';
    END IF;
    IF is_step THEN
        reserved := reserve_positions();
    END IF;
    INSERT INTO checkpoints (run, step, key, epoch, value, checksum, schema, fingerprint, record, event, position, at, skipped)
    VALUES (c->>0, c->>2, c->>3, (c->>1)::bigint, c->>4, c->>5, c->>6, c->>7, c->>8, CASE WHEN is_step THEN r.event END,
            CASE WHEN is_step THEN nextval('positions') END, wall, (c->>9)::boolean)
    ON CONFLICT (run, key, step) DO NOTHING;
    IF NOT FOUND THEN
        RETURN save_checkpoints(jsonb_build_array(c), wall, mono);
    END IF;
    IF is_step THEN
        UPDATE open_runs SET events = r.event WHERE ctid = r.tid;
    END IF;
    RETURN '[]';
END $$;

-- A Settle of an attempt that succeeded.
CREATE FUNCTION lone_success(c jsonb, batch jsonb) RETURNS text
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    said text := begin_lone(batch);
    p jsonb := nullif(c->8, 'null');
    wall timestamptz;
    mono timestamptz;
    reserved boolean;
    r record;
BEGIN
    SELECT ctid AS tid, events, attempts, attempt_limit, started, worker, lease_until, lease_ttl INTO r FROM open_runs
    WHERE id = c->>0 AND epoch = (c->>1)::bigint AND coalesce(state) = 'running' FOR NO KEY UPDATE;
    -- Only now: as in lone_checkpoint().
    wall := coalesce(to_timestamp((batch->>'wall')::double precision), clock_timestamp());
    mono := coalesce(to_timestamp((batch->>'mono')::double precision), wall);
    IF (r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl) IS NOT TRUE THEN
        RETURN '[0]';
    END IF;
    IF p->>3 <> '' OR EXISTS (SELECT FROM checkpoints WHERE run = c->>0 AND step = p->>2 AND key = p->>3) THEN
        RETURN succeed(jsonb_build_array(c), wall, mono);
    END IF;
    reserved := reserve_positions();
    DELETE FROM open_runs WHERE ctid = r.tid;
    INSERT INTO results (id, events, epoch, attempts, attempt_limit, started, finished, worker, progress, result,
                         step, skipped, value, checksum, schema, fingerprint, record)
    VALUES (c->>0, r.events + CASE WHEN p IS NULL THEN 1 ELSE 2 END, (c->>1)::bigint, r.attempts, r.attempt_limit,
            r.started, wall, r.worker, c->>7, c->>3, p->>2, (p->>9)::boolean, nullif(p->>4, c->>3), p->>5, p->>6, p->>7,
            p->>8);
    RETURN '[]';
END $$;

-- What apply() does around the parts of a batch.
CREATE FUNCTION begin_lone(batch jsonb) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF batch ? 'sync' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF batch ? 'ring' THEN
        PERFORM pg_notify('holdfast_' || 'requests'::regclass::oid, batch->>'ring');  -- the channel doorbell()
    END IF;
    RETURN set_config('lock_timeout', batch->>'wait', true);
END $$;
