-- A lone command: the only one of its batch, and one of the three that a run waits for (Submit, SaveCheckpoint, Settle).
--
-- Each of these functions does what apply() does with such a batch, without the envelope. `c` is the command as submit(),
-- save_checkpoints() and succeed() take it, and the answer is theirs; `batch` is what apply() takes, without parts and
-- names.

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
