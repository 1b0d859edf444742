-- Accepting runs.
--
-- Each element of `given` is a Submit:
--   0 id, 1 tenant, 2 pipeline, 3 lane, 4 input, 5 fingerprint, 6 key, 7 unique, 8 priority, 9 delay,
--   10 max_attempts, 11 parent, 12 checkpoints
-- None of them is unique. `inherits` says whether any of them brings checkpoints, `keyed` whether any has a key.
-- Answers those that were not created as [place, run, created, state, conflict]; all others were.
CREATE FUNCTION submit(given jsonb, inherits boolean, keyed boolean, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    made_ids text[];
    reserved boolean;
BEGIN
    IF jsonb_array_length(given) = 1 AND NOT inherits THEN
        RETURN submit_one(given->0, wall, mono);
    END IF;
    reserved := reserve_positions();
    IF NOT inherits AND NOT keyed AND submit_new(given, wall, mono) THEN
        RETURN '[]';
    END IF;
    WITH asked AS (
        SELECT nextval('positions') AS seq, c FROM jsonb_array_elements(given) AS g (c)
    ), made AS (
        INSERT INTO requests (seq, id, tenant, pipeline, lane, input, fingerprint, key, is_unique, priority, delay,
                              max_attempts, parent, inherits, created)
        SELECT seq, c->>0, c->>1, c->>2, c->>3, c->>4, c->>5, c->>6, (c->>7)::boolean, (c->>8)::bigint,
               (c->>9)::double precision, (c->>10)::bigint, c->>11, jsonb_array_length(c->12) > 0, wall
        FROM asked
        ORDER BY c->>1, c->>6, seq  -- the same order for everybody: two batches with the same keys never deadlock
        ON CONFLICT DO NOTHING
        RETURNING *
    ), opened AS (
        INSERT INTO open_runs (id, seq, tenant, pipeline, lane, priority, size, attempt_limit, is_unique, available, due,
                               delay)
        SELECT id, seq, tenant, pipeline, lane, priority, octet_length(input), max_attempts, is_unique,
               CASE WHEN delay > 0 THEN wall + span(delay) END, CASE WHEN delay > 0 THEN mono + span(delay) END,
               CASE WHEN delay > 0 THEN span(delay) END
        FROM made
    )
    SELECT coalesce(array_agg(id), '{}') INTO made_ids FROM made;
    IF inherits THEN
        INSERT INTO checkpoints (run, step, key, value, checksum, schema, fingerprint, record, epoch)
        SELECT c->>0, p->>'step', p->>'key', p->>'value', p->>'checksum', p->>'schema', p->>'fingerprint',
               coalesce(p->>'record', '{}'), 0
        FROM jsonb_array_elements(given) AS g (c), jsonb_array_elements(c->12) AS h (p)
        WHERE c->>0 = ANY (made_ids)
        ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(made_ids) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN (
        SELECT coalesce(jsonb_agg(jsonb_build_array(n - 1) || submit_alone(c, wall, mono) ORDER BY n), '[]')
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
        WHERE c->>0 <> ALL (made_ids)
    );
END $$;

-- The same for a group without keys and checkpoints. Its ids are new unless a request is repeated, so it is cheaper to
-- find out by trying than to ask for each: answers whether it did, and if it did not, nothing was written.
CREATE FUNCTION submit_new(given jsonb, wall timestamptz, mono timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    numbers bigint[] := ARRAY(SELECT nextval('positions') FROM generate_series(1, jsonb_array_length(given)));
BEGIN
    INSERT INTO requests (seq, id, tenant, pipeline, lane, input, fingerprint, is_unique, priority, delay, max_attempts,
                          parent, inherits, created)
    SELECT numbers[n], c->>0, c->>1, c->>2, c->>3, c->>4, c->>5, false, (c->>8)::bigint, (c->>9)::double precision,
           (c->>10)::bigint, c->>11, false, wall
    FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n);
    INSERT INTO open_runs (id, seq, tenant, pipeline, lane, priority, size, attempt_limit, is_unique, available, due, delay)
    SELECT c->>0, numbers[n], c->>1, c->>2, c->>3, (c->>8)::bigint, octet_length(c->>4), (c->>10)::bigint, false,
           wall + wait, mono + wait, wait
    FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n), LATERAL (
        SELECT CASE WHEN (c->>9)::double precision > 0 THEN span((c->>9)::double precision) END AS wait) AS delayed;
    RETURN true;
EXCEPTION WHEN unique_violation THEN
    RETURN false;
END $$;

-- One Submit that may meet another run. Its unique slot, if it needs one, was locked by lock_rows(), so nobody takes
-- it in between. Answers [run, created, state, conflict].
CREATE FUNCTION submit_alone(c jsonb, wall timestamptz, mono timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    answer := in_the_way(c);
    IF answer IS NOT NULL THEN
        RETURN answer;
    END IF;
    answer := submit(jsonb_build_array(c), true, true, wall, mono)::jsonb;  -- which comes back here if somebody was faster
    RETURN CASE WHEN answer = '[]' THEN jsonb_build_array(c->>0, true, 'queued', false) ELSE (answer->0) - 0 END;
END $$;

-- The run that stands in the way of a Submit, as [run, created, state, conflict], or NULL.
CREATE FUNCTION in_the_way(c jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    other requests;
    blocker open_runs;
BEGIN
    SELECT * INTO other FROM requests WHERE id = c->>0;
    IF FOUND THEN
        RETURN jsonb_build_array(other.id, true, state_of(other.id), false);
    END IF;
    SELECT * INTO other FROM requests WHERE tenant = c->>1 AND key = c->>6;
    IF FOUND THEN
        RETURN jsonb_build_array(other.id, false, state_of(other.id), other.fingerprint <> c->>5);
    END IF;
    IF (c->>7)::boolean THEN
        SELECT * INTO blocker FROM open_runs
        WHERE is_unique AND tenant = c->>1 AND pipeline = c->>2 AND state IN ('queued', 'running', 'paused');
        IF FOUND THEN
            RETURN jsonb_build_array(blocker.id, false, blocker.state, false);
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- The state of a run; NULL if there is none.
CREATE FUNCTION state_of(run text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((SELECT state FROM open_runs WHERE id = run),
                    (SELECT 'succeeded' FROM results WHERE id = run));
END $$;
