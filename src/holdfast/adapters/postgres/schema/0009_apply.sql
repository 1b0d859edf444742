-- One batch of commands, in one transaction and one round trip.
--
-- `batch` is an object:
--   parts      [[kind, payload, …], …] in the order in which they take effect
--   runs       ids of the runs that the parts change
--   locks      names of the locks that the parts use;  new_locks  those of them that are to exist
--   lanes      names of the lanes that the parts submit to or define
--   slots      [[tenant, pipeline], …] of submits that need a unique slot;  resumes  ids of runs that may need theirs
--   ring       who rings, if others are to be woken
--   wall, mono the present, only from tests that move it; otherwise it is the server's clock
--   wait       how long to wait for somebody else's row, in milliseconds
--   sync       whether the commit has to be made to wait for the disk
-- Answers the parts' answers, as a JSON array.
--
-- Every statement in these functions finds its rows by index, whatever the planner thinks of the tables' sizes: its
-- choices are made once per session, when a table may still be empty, and kept while it grows.
CREATE FUNCTION apply(batch jsonb) RETURNS text
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    wall timestamptz;
    mono timestamptz;
    parts jsonb := batch->'parts';
    part jsonb;
    said text;
    locked boolean;
    answer text;
    answers text[] := '{}';
    loud boolean := false;
BEGIN
    said := set_config('lock_timeout', batch->>'wait', true);
    IF batch ? 'sync' THEN
        said := set_config('synchronous_commit', 'on', true);
    END IF;
    locked := lock_rows(batch);
    -- Only now: who had to wait for a row must not look at leases with the time of its arrival.
    wall := coalesce(to_timestamp((batch->>'wall')::double precision), clock_timestamp());
    mono := coalesce(to_timestamp((batch->>'mono')::double precision), wall);
    FOR i IN 0 .. jsonb_array_length(parts) - 1 LOOP
        part := parts->i;
        CASE part->>0
            WHEN 'save_checkpoints' THEN answer := save_checkpoints(part->1, wall, mono);
            WHEN 'succeed' THEN answer := succeed(part->1, wall, mono); loud := true;
            WHEN 'claim' THEN answer := claim(part->1, wall, mono);
            WHEN 'submit_new' THEN answer := submit_new(part->1, wall, mono); loud := true;
            WHEN 'submit' THEN answer := submit(part->1, (part->>2)::boolean, wall, mono); loud := true;
            WHEN 'submit_alone' THEN answer := submit_alone(part->1, wall, mono); loud := true;
            WHEN 'renew' THEN answer := renew(part->1, (part->>2)::double precision, mono);
            WHEN 'save_progress' THEN answer := save_progress(part->1, mono);
            WHEN 'append_logs' THEN answer := append_logs(part->1, (part->>2)::bigint, wall, mono);
            WHEN 'end_attempts' THEN answer := end_attempts(part->1, wall, mono); loud := true;
            WHEN 'put_aside' THEN answer := put_aside(part->1, wall, mono);
            WHEN 'acquire' THEN answer := acquire(part->1, wall, mono);
            WHEN 'renew_locks' THEN answer := renew_locks(part->1, (part->>2)::double precision, mono);
            WHEN 'release' THEN answer := release(part->1, mono); loud := loud OR answer <> '[]';
            WHEN 'force_release' THEN answer := force_release(part->1, wall, mono); loud := loud OR answer = 'true';
            WHEN 'sweep' THEN answer := sweep(part->1, wall, mono); loud := loud OR answer <> '[]';
            WHEN 'prune' THEN answer := prune(part->1, wall);
            WHEN 'cancel' THEN answer := cancel(part->1, wall); loud := true;
            WHEN 'pause' THEN answer := pause(part->1, wall); loud := true;
            WHEN 'resume' THEN answer := resume(part->1, wall); loud := true;
            WHEN 'define_lane' THEN answer := define_lane(part->1);
            WHEN 'bury' THEN answer := bury(part->1, wall);
            WHEN 'mark_redriven' THEN answer := mark_redriven(part->1, wall);
            WHEN 'discard' THEN answer := discard(part->1, wall); loud := loud OR answer = 'true';
            WHEN 'read_outbox' THEN answer := read_outbox(part->1);
            WHEN 'confirm_outbox' THEN answer := confirm_outbox(part->1);
        END CASE;
        answers := answers || answer;
    END LOOP;
    IF loud AND batch ? 'ring' THEN
        PERFORM pg_notify('holdfast_' || 'requests'::regclass::oid, batch->>'ring');  -- the channel doorbell()
    END IF;
    RETURN '[' || array_to_string(answers, ',') || ']';
END $$;

-- The channel on which the stores of this schema wake one another.
CREATE FUNCTION doorbell() RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$ SELECT 'holdfast_' || 'requests'::regclass::oid $$;

-- Lock everything that a batch names before it does anything, in one order for everybody: lanes, slots, runs, locks,
-- each by name. Whoever has one of these waits only for later ones, so nobody ever waits in a circle. Whatever a command
-- finds by itself (claims, sweeps, prunes), it takes only if nobody else has it.
CREATE FUNCTION lock_rows(batch jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    -- In a fifo lane, the numbers of runs are to rise in the order of their commits: one submitter at a time.
    IF jsonb_array_length(batch->'lanes') = 1 THEN  -- and of most things there is just one
        PERFORM FROM lanes WHERE name = batch->'lanes'->>0 AND sort = 'fifo' FOR NO KEY UPDATE;
    ELSIF batch ? 'lanes' THEN
        PERFORM FROM lanes WHERE name = ANY (ARRAY(SELECT jsonb_array_elements_text(batch->'lanes'))) AND sort = 'fifo'
        ORDER BY name FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'slots' OR batch ? 'resumes' THEN
        PERFORM lock_slots(batch);
    END IF;
    IF jsonb_array_length(batch->'runs') = 1 THEN
        PERFORM FROM open_runs WHERE id = batch->'runs'->>0 FOR NO KEY UPDATE;
    ELSIF batch ? 'runs' THEN
        PERFORM FROM open_runs WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text(batch->'runs')))
        ORDER BY id FOR NO KEY UPDATE;
    END IF;
    IF batch ? 'new_locks' THEN
        INSERT INTO locks (name, epoch)
        SELECT name, 0 FROM jsonb_array_elements_text(batch->'new_locks') AS given (name)
        WHERE NOT EXISTS (SELECT FROM locks k WHERE k.name = given.name) ORDER BY name COLLATE "C"
        ON CONFLICT DO NOTHING;
    END IF;
    IF batch ? 'locks' THEN
        PERFORM FROM locks WHERE name = ANY (ARRAY(SELECT jsonb_array_elements_text(batch->'locks')))
        ORDER BY name FOR NO KEY UPDATE;
    END IF;
    RETURN true;
END $$;

-- A unique slot is a place, not a row: it is locked by number.
CREATE FUNCTION lock_slots(batch jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(slot) FROM (
        SELECT DISTINCT hashtextextended(place, 'requests'::regclass::oid::bigint) AS slot FROM (
            SELECT jsonb_build_array(s->>0, s->>1)::text
            FROM jsonb_array_elements(coalesce(batch->'slots', '[]')) AS given (s)
            UNION ALL
            SELECT jsonb_build_array(r.tenant, r.pipeline)::text FROM open_runs r
            WHERE r.is_unique AND r.id = ANY (ARRAY(SELECT jsonb_array_elements_text(coalesce(batch->'resumes', '[]'))))
        ) AS places (place) ORDER BY slot) AS slots;
END $$;
