-- One at a time. Whoever waits for a single run feels the machinery of statements that can take many: executing them costs
-- more than the rows that are written. So a group of one goes by a few plain statements, which need half the time.

-- What submit() does with one that brings no checkpoints.
CREATE FUNCTION submit_one(c jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    wait interval := CASE WHEN (c->>9)::double precision > 0 THEN span((c->>9)::double precision) END;
    reserved boolean := reserve_positions();
    number bigint := nextval('positions');
BEGIN
    INSERT INTO requests (seq, id, tenant, pipeline, lane, input, fingerprint, key, is_unique, priority, delay,
                          max_attempts, parent, inherits, created)
    VALUES (number, c->>0, c->>1, c->>2, c->>3, c->>4, c->>5, c->>6, (c->>7)::boolean, (c->>8)::bigint,
            (c->>9)::double precision, (c->>10)::bigint, c->>11, false, wall)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN jsonb_build_array(jsonb_build_array(0) || submit_alone(c, wall, mono));
    END IF;
    INSERT INTO open_runs (id, seq, tenant, pipeline, lane, priority, size, attempt_limit, is_unique, available, due, delay)
    VALUES (c->>0, number, c->>1, c->>2, c->>3, (c->>8)::bigint, octet_length(c->>4), (c->>10)::bigint, (c->>7)::boolean,
            wall + wait, mono + wait, wait);
    RETURN '[]';
END $$;

-- What lease() does with one row.
CREATE FUNCTION lease_one(chosen tid, by_worker text, ttl interval, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    asked record;
BEGIN
    UPDATE open_runs SET state = 'running', epoch = epoch + 1, attempts = attempts + 1, worker = by_worker,
                         lease_until = mono + ttl, lease_ttl = ttl, started = coalesce(started, wall), reason = NULL,
                         events = events + 1
    WHERE ctid = chosen
    RETURNING id, tenant, pipeline, lane, epoch, attempts, attempt_limit, progress, events INTO r;
    INSERT INTO events (run, seq, type, at, data)
    VALUES (r.id, r.events, 'run.started', wall,
            '{"attempt":' || r.attempts || ',"worker":' || quoted(by_worker) || ',"epoch":' || r.epoch || '}');
    SELECT input, inherits INTO asked FROM requests WHERE id = r.id;
    RETURN json_build_array(json_build_array(r.id, r.tenant, r.pipeline, r.lane, r.epoch, r.attempts, r.attempt_limit,
                                             asked.input, r.progress, r.epoch > 1 OR asked.inherits));
END $$;

-- What save_checkpoints() does with one. It locks the row by itself; without `wall` and `mono` it is the present when it has:
-- who had to wait for the row must not look at its lease with the time of its arrival.
CREATE FUNCTION save_one(c jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    is_step boolean := c->>3 = '';
    reserved boolean;
    r record;
BEGIN
    SELECT ctid AS tid, events + 1 AS event, lease_until, lease_ttl INTO r FROM open_runs
    WHERE id = c->>0 AND epoch = (c->>1)::bigint AND coalesce(state) = 'running' FOR NO KEY UPDATE;
    wall := coalesce(wall, clock_timestamp());
    mono := coalesce(mono, wall);
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
        PERFORM save_checkpoint(c, wall);
    ELSIF is_step THEN
        UPDATE open_runs SET events = r.event WHERE ctid = r.tid;
    END IF;
    RETURN '[]';
END $$;

-- What succeed() does with one; the row and the present as in save_one().
CREATE FUNCTION succeed_one(c jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    p jsonb := nullif(c->8, 'null');
    reserved boolean;
    r record;
BEGIN
    SELECT ctid AS tid, events, attempts, attempt_limit, started, worker, lease_until, lease_ttl INTO r FROM open_runs
    WHERE id = c->>0 AND epoch = (c->>1)::bigint AND coalesce(state) = 'running' FOR NO KEY UPDATE;
    wall := coalesce(wall, clock_timestamp());
    mono := coalesce(mono, wall);
    IF (r.lease_until > mono AND r.lease_until <= mono + r.lease_ttl) IS NOT TRUE THEN
        RETURN '[0]';
    END IF;
    IF p->>3 <> '' OR EXISTS (SELECT FROM checkpoints WHERE run = c->>0 AND step = p->>2 AND key = p->>3) THEN
        PERFORM succeed_after(c, wall, mono);
        RETURN '[]';
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

-- A lone command: the only one of its batch, and one of the three that a run waits for (Submit, SaveCheckpoint, Settle). It
-- does without the envelope of apply(), too. `c` is the command as the functions above take it, and the answer is theirs;
-- `batch` is what apply() takes, without parts and names.

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
    PERFORM FROM lanes WHERE name = c->>3 AND sort = 'fifo' FOR NO KEY UPDATE;  -- as in lock_rows()
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
BEGIN
    RETURN save_one(c, to_timestamp((batch->>'wall')::double precision), to_timestamp((batch->>'mono')::double precision));
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
BEGIN
    RETURN succeed_one(c, to_timestamp((batch->>'wall')::double precision), to_timestamp((batch->>'mono')::double precision));
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
