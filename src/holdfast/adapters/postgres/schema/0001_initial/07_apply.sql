-- One batch of commands, in one transaction and one round trip.
--
-- `batch` is an object:
--   parts      [[kind, payload, …], …] in the order in which they take effect
--   lanes      names of lanes that the parts submit to
--   runs       ids of runs that they change
--   names      of the locks, dead letters and records that they change or rest on
--   notify     what is said to other processes, if they are to be woken
--   wall, mono the present, only from tests that move it; otherwise it is the server's clock
--   wait       how long to wait for somebody else's row, in milliseconds
--   sync       whether the commit has to be made to wait for the disk
-- Answers the parts' answers, as a JSON array.
--
-- Every statement in these functions finds its rows by index, whatever the planner thinks of the
-- tables' sizes: its choices are made once per session, when a table may still be empty, and kept
-- while it grows. A function in SQL is planned anew by every call, unless it is one expression or
-- one query that becomes a part of its caller's: others are in PL/pgSQL.
CREATE FUNCTION apply(batch jsonb) RETURNS text
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    wall double precision;
    mono double precision;
    part jsonb;
    setting text;
    locked boolean;
    answer json;
    answers text[] := '{}';
BEGIN
    setting := set_config('lock_timeout', batch->>'wait', true);
    IF batch ? 'sync' THEN
        setting := set_config('synchronous_commit', 'on', true);
    END IF;
    locked := lock_rows(batch);
    -- Only now: who had to wait for a row must not look at leases with the time of its arrival.
    wall := coalesce((batch->>'wall')::double precision, extract(epoch FROM clock_timestamp()));
    mono := coalesce((batch->>'mono')::double precision, wall);
    FOR part IN SELECT jsonb_array_elements(batch->'parts') LOOP
        CASE part->>0
            WHEN 'submit' THEN answer := to_json(submit(part->1, wall, mono));
            WHEN 'claim' THEN answer := claim(part->1, wall, mono);
            WHEN 'renew' THEN
                answer := to_json(renew(part->1, (part->>2)::double precision, mono));
            WHEN 'save_checkpoints' THEN
                answer := to_json(save_checkpoints(part->1, wall, mono));
            WHEN 'save_progress' THEN answer := to_json(save_progress(part->1, mono));
            WHEN 'append_logs' THEN
                answer := to_json(append_logs(part->1, (part->>2)::bigint, wall, mono));
            WHEN 'succeed' THEN answer := to_json(succeed(part->1, wall, mono));
            WHEN 'decisions' THEN answer := to_json(write_decisions(part->1, wall, mono));
        END CASE;
        answers := answers || coalesce(answer::text, '[]');
    END LOOP;
    IF batch ? 'notify' THEN
        PERFORM pg_notify(channel(), batch->>'notify');
    END IF;
    RETURN '[' || array_to_string(answers, ',') || ']';
END $$;

-- The channel on which the stores of this schema wake one another.
CREATE FUNCTION channel() RETURNS text
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN 'holdfast_' || 'requests'::regclass::oid;
END $$;

-- Lock everything that a batch names before it does anything, in one order for everybody: lanes,
-- runs, then what else has a name. Whoever has one of these waits only for later ones, so nobody
-- ever waits in a circle. Whatever a claim finds, it takes only if nobody else has it.
CREATE FUNCTION lock_rows(batch jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF batch ? 'lanes' THEN  -- in a fifo lane numbers rise with commits: one submitter at a time
        PERFORM FROM lanes
        WHERE name = ANY (ARRAY(SELECT jsonb_array_elements_text(batch->'lanes')))
          AND "order" = 'fifo'
        ORDER BY name FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'runs' THEN
        PERFORM FROM open_runs
        WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text(batch->'runs')))
        ORDER BY id FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'names' THEN
        -- What is not there yet has no row to lock, and two might make it at once.
        PERFORM pg_advisory_xact_lock('locks'::regclass::oid::int, hash) FROM (
            SELECT DISTINCT hashtext(name) AS hash
            FROM jsonb_array_elements_text(batch->'names') AS name ORDER BY hash) AS ordered;
    END IF;
    RETURN true;
END $$;
