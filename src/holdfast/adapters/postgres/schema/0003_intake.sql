-- Accepting runs.
--
-- Each element of `given` is a Submit:
--   0 id, 1 tenant, 2 pipeline, 3 lane, 4 input, 5 fingerprint, 6 key, 7 unique, 8 priority, 9 delay,
--   10 max_attempts, 11 parent, 12 checkpoints
-- `inherits` says whether any of them brings checkpoints.
-- Answers those that were not created as [place, run, created, state, conflict]; all others were.
CREATE FUNCTION submit(given jsonb, inherits boolean, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    made_ids text[];
    reserved boolean := reserve_positions();
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT nextval('run_numbers') AS seq, c->>0 AS id, c->>1 AS tenant, c->>2 AS pipeline, c->>3 AS lane,
               c->>4 AS input, c->>5 AS fingerprint, c->>6 AS key, (c->>7)::boolean AS is_unique,
               (c->>8)::bigint AS priority, (c->>9)::double precision AS delay, (c->>10)::bigint AS attempt_limit,
               c->>11 AS parent, jsonb_array_length(c->12) > 0 AS inherited
        FROM jsonb_array_elements(given) AS g (c)
    ), made AS (
        INSERT INTO runs (seq, id, tenant, pipeline, lane, input, fingerprint, key, is_unique, priority, attempt_limit,
                          parent, inherited, created, available, due, delay)
        SELECT seq, id, tenant, pipeline, lane, input, fingerprint, key, is_unique, priority, attempt_limit,
               parent, inherited, wall, CASE WHEN delay > 0 THEN wall + span(delay) END,
               CASE WHEN delay > 0 THEN mono + span(delay) END, CASE WHEN delay > 0 THEN span(delay) END
        FROM asked
        ORDER BY tenant, key, seq  -- the same order for everybody: two batches with the same keys never deadlock
        ON CONFLICT DO NOTHING
        RETURNING id, seq
    ), told AS (
        INSERT INTO events (run, seq, type, at, data)
        SELECT id, 1, 'run.queued', wall, '{}' FROM made ORDER BY seq
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
        SELECT coalesce(jsonb_agg(jsonb_build_array(n - 1) || existing_run(c, wall, mono) ORDER BY n), '[]')
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
        WHERE c->>0 <> ALL (made_ids)
    );
END $$;

-- The run that stands in the way of a Submit, as [run, created, state, conflict].
CREATE FUNCTION existing_run(c jsonb, wall timestamptz, mono timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    other runs;
    answer jsonb;
BEGIN
    SELECT * INTO other FROM runs WHERE id = c->>0;
    IF FOUND THEN
        RETURN jsonb_build_array(other.id, true, other.state, false);
    END IF;
    SELECT * INTO other FROM runs WHERE tenant = c->>1 AND key = c->>6;
    IF FOUND THEN
        RETURN jsonb_build_array(other.id, false, other.state, other.fingerprint <> c->>5);
    END IF;
    SELECT * INTO other FROM runs
    WHERE (c->>7)::boolean AND is_unique AND tenant = c->>1 AND pipeline = c->>2
      AND state IN ('queued', 'running', 'paused');
    IF FOUND THEN
        RETURN jsonb_build_array(other.id, false, other.state, false);
    END IF;
    -- It was there a moment ago and is gone: deleted, or over. Then the way is free.
    answer := submit(jsonb_build_array(c), true, wall, mono)::jsonb;
    IF answer = '[]' THEN
        RETURN jsonb_build_array(c->>0, true, 'queued', false);
    END IF;
    RETURN (answer->0) - 0;
END $$;
