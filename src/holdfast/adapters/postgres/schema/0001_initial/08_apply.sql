-- One batch of commands, in one transaction and one round trip.
--
-- `batch` is an object:
--   parts      [[kind, payload, …], …] in the order in which they take effect
--   runs, locks, letters, records   names of what the parts change;  lanes  those they submit to
--   notify     what is said to other processes, if they are to be woken
--   wall, mono the present, only from tests that move it; otherwise it is the server's clock
--   wait       how long to wait for somebody else's row, in milliseconds
--   sync       whether the commit has to be made to wait for the disk
-- Answers the parts' answers, as a JSON array.
--
-- Every statement in these functions finds its rows by index, whatever the planner thinks of the
-- tables' sizes: its choices are made once per session, when a table may still be empty, and kept
-- while it grows.
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
    answer text;
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
            WHEN 'submit' THEN answer := submit(part->1, wall, mono);
            WHEN 'claim' THEN answer := claim(part->1, wall, mono);
            WHEN 'renew' THEN answer := renew(part->1, (part->>2)::double precision, mono);
            WHEN 'save_checkpoints' THEN answer := save_checkpoints(part->1, wall, mono);
            WHEN 'save_progress' THEN answer := save_progress(part->1, mono);
            WHEN 'append_logs' THEN
                answer := append_logs(part->1, (part->>2)::bigint, wall, mono);
            WHEN 'succeed' THEN answer := succeed(part->1, wall, mono);
            WHEN 'acquire' THEN answer := acquire(part->1, wall, mono);
            WHEN 'renew_locks' THEN
                answer := renew_locks(part->1, (part->>2)::double precision, mono);
            WHEN 'release' THEN answer := release(part->1, mono);
            WHEN 'decisions' THEN answer := write_decisions(part->1, wall, mono);
        END CASE;
        answers := answers || answer;
    END LOOP;
    IF batch ? 'notify' THEN
        PERFORM pg_notify(channel(), batch->>'notify');
    END IF;
    RETURN '[' || array_to_string(answers, ',') || ']';
END $$;

-- The channel on which the stores of this schema wake one another.
CREATE FUNCTION channel() RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT 'holdfast_' || 'requests'::regclass::oid
$$;

-- Lock everything that a batch names before it does anything, in one order for everybody: lanes,
-- runs, locks, letters, records, each by name. Whoever has one of these waits only for later ones,
-- so nobody ever waits in a circle. Whatever a claim finds, it takes only if nobody else has it.
CREATE FUNCTION lock_rows(batch jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF batch ? 'lanes' THEN  -- in a fifo lane numbers rise with commits: one submitter at a time
        PERFORM FROM lanes WHERE name = ANY (names(batch->'lanes')) AND "order" = 'fifo'
        ORDER BY name FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'runs' THEN
        PERFORM FROM open_runs WHERE id = ANY (names(batch->'runs'))
        ORDER BY id FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'locks' THEN
        -- A lock that nobody has held yet has no row, and two might make it at once: whoever comes
        -- second would look at the other's lease with a time from before it was granted. So the
        -- name is locked instead.
        PERFORM pg_advisory_xact_lock('locks'::regclass::oid::int, missing.hash) FROM (
            SELECT DISTINCT hashtext(given.name) AS hash
            FROM jsonb_array_elements_text(batch->'locks') AS given (name)
            WHERE NOT EXISTS (SELECT FROM locks k WHERE k.name = given.name)
            ORDER BY hash) missing;
        PERFORM FROM locks WHERE name = ANY (names(batch->'locks'))
        ORDER BY name FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'letters' THEN
        PERFORM FROM dead_letters WHERE id = ANY (names(batch->'letters'))
        ORDER BY id FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'records' THEN
        -- A record that is not there yet has no row to lock, and two might make it: the names are
        -- locked as well.
        PERFORM pg_advisory_xact_lock('records'::regclass::oid::int, name.hash) FROM (
            SELECT DISTINCT hashtext(key) AS hash
            FROM jsonb_array_elements_text(batch->'records') AS given (key)
            ORDER BY hash) name;
        PERFORM FROM records WHERE key = ANY (names(batch->'records'))
        ORDER BY key FOR NO KEY UPDATE;
    END IF;
    RETURN true;
END $$;

CREATE FUNCTION names(list jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$ SELECT ARRAY(SELECT jsonb_array_elements_text(list)) $$;
