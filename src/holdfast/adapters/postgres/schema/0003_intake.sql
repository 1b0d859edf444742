-- Accepting runs.
--
-- Each element of `given` is a Submit:
--   0 id, 1 tenant, 2 pipeline, 3 lane, 4 input, 5 fingerprint, 6 key, 7 unique, 8 priority, 9 delay,
--   10 max_attempts, 11 parent, 12 checkpoints
-- None of them is unique. `inherits` says whether any of them brings checkpoints.
-- Answers those that were not created as [place, run, created, state, conflict]; all others were.
CREATE FUNCTION submit(given jsonb, inherits boolean, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    made_ids text[];
    reserved boolean;
BEGIN
    IF jsonb_array_length(given) = 1 AND NOT inherits THEN
        RETURN submit_one(given->0, wall, mono);
    END IF;
    reserved := reserve_positions();
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
-- find out by trying than to ask for each. They come in columns, and what many have in common comes once:
--   0 kinds, each as tenant, pipeline, lane, priority, delay, max_attempts, parent
--   1 ids, 2 inputs, 3 fingerprints, 4 their kinds, counted from 1, unless there is just one
CREATE FUNCTION submit_new(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    reserved boolean := reserve_positions();
    numbers bigint[] := ARRAY(SELECT nextval('positions') FROM generate_series(1, jsonb_array_length(given->1)));
    tenants text[]; pipelines text[]; lanes text[]; priorities bigint[]; delays double precision[]; waits interval[];
    limits bigint[]; parents text[];
BEGIN
    SELECT array_agg(k->>0), array_agg(k->>1), array_agg(k->>2), array_agg((k->>3)::bigint),
           array_agg((k->>4)::double precision),
           array_agg(CASE WHEN (k->>4)::double precision > 0 THEN span((k->>4)::double precision) END),
           array_agg((k->>5)::bigint), array_agg(k->>6)
    INTO tenants, pipelines, lanes, priorities, delays, waits, limits, parents
    FROM jsonb_array_elements(given->0) AS kinds (k);
    INSERT INTO requests (seq, id, tenant, pipeline, lane, input, fingerprint, is_unique, priority, delay, max_attempts,
                          parent, inherits, created)
    SELECT numbers[n], id, tenants[k], pipelines[k], lanes[k], input, fingerprint, false, priorities[k], delays[k], limits[k],
           parents[k], false, wall
    FROM ROWS FROM (jsonb_array_elements_text(given->1), jsonb_array_elements_text(given->2),
                    jsonb_array_elements_text(given->3), jsonb_array_elements_text(given->4))
             WITH ORDINALITY AS g (id, input, fingerprint, kind, n), coalesce(kind::integer, 1) AS k;
    INSERT INTO open_runs (id, seq, tenant, pipeline, lane, priority, size, attempt_limit, is_unique, available, due, delay)
    SELECT id, numbers[n], tenants[k], pipelines[k], lanes[k], priorities[k], octet_length(input), limits[k], false,
           wall + waits[k], mono + waits[k], waits[k]
    FROM ROWS FROM (jsonb_array_elements_text(given->1), jsonb_array_elements_text(given->2),
                    jsonb_array_elements_text(given->4))
             WITH ORDINALITY AS g (id, input, kind, n), coalesce(kind::integer, 1) AS k;
    RETURN '[]';
EXCEPTION WHEN unique_violation THEN
    RETURN submit(row_by_row(given), false, wall, mono);
END $$;

-- What submit_new() was given, as submit() takes it.
CREATE FUNCTION row_by_row(given jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT jsonb_agg(jsonb_build_array(id, k->0, k->1, k->2, input, fingerprint, NULL, false, k->3, k->4, k->5, k->6,
                                           '[]'::jsonb) ORDER BY n)
        FROM ROWS FROM (jsonb_array_elements_text(given->1), jsonb_array_elements_text(given->2),
                        jsonb_array_elements_text(given->3), jsonb_array_elements_text(given->4))
                 WITH ORDINALITY AS g (id, input, fingerprint, kind, n),
             LATERAL (SELECT given->0->(coalesce(kind::integer, 1) - 1) AS k) AS shared
    );
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
    answer := submit(jsonb_build_array(c), true, wall, mono)::jsonb;  -- which comes back here if somebody was faster
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
