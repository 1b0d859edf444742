-- Accept runs. Each element of `commands` is a Submit:
--   0 id, 1 tenant, 2 pipeline, 3 lane, 4 input, 5 fingerprint, 6 key, 7 unique, 8 priority,
--   9 delay, 10 max_attempts, 11 parent, 12 checkpoints, 13 labels, 14 attributes
-- Those whose id or key is taken are not accepted. A unique slot that is taken raises
-- unique_violation.
CREATE FUNCTION submit(commands jsonb, wall double precision, mono double precision,
                       OUT accepted bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    reserved boolean := reserve_positions();
BEGIN
    WITH submitted AS MATERIALIZED (
        SELECT nextval('positions') AS seq, n, c, nullif((c->>9)::double precision, 0) AS wait
        FROM jsonb_array_elements(commands) WITH ORDINALITY AS g (c, n)
    ), made AS (
        INSERT INTO requests (seq, id, tenant, pipeline, lane, input, fingerprint, key, is_unique,
                              priority, parent, inherits, created, labels, attributes)
        SELECT seq, c->>0, c->>1, c->>2, c->>3, c->>4, c->>5, c->>6, (c->>7)::boolean,
               (c->>8)::bigint, c->>11, c->12 <> '[]', wall, nullif(c->>13, '{}'),
               nullif(c->>14, '{}')
        FROM submitted
        -- one order for everybody: batches with the same keys never deadlock
        ORDER BY c->>1, c->>6, seq
        ON CONFLICT DO NOTHING
        RETURNING seq
    ), fresh AS MATERIALIZED (
        SELECT * FROM submitted WHERE seq = ANY (ARRAY(SELECT seq FROM made))
    ), opened AS (
        INSERT INTO open_runs (id, seq, tenant, pipeline, lane, priority, size, attempt_limit,
                               is_unique, available, due, delay)
        SELECT c->>0, seq, c->>1, c->>2, c->>3, (c->>8)::bigint, octet_length(c->>4),
               (c->>10)::bigint, (c->>7)::boolean, wall + wait, mono + wait, coalesce(wait, 0)
        FROM fresh
    ), inherited AS (
        INSERT INTO checkpoints (run, step, key, value, checksum, schema, fingerprint, record,
                                 epoch)
        SELECT c->>0, p->>'step', p->>'key', p->>'value', p->>'checksum', p->>'schema',
               p->>'fingerprint', coalesce(p->>'record', '{}'), 0
        FROM fresh, jsonb_array_elements(c->12) AS p WHERE c->12 <> '[]'
    ), labelled AS (
        INSERT INTO labels (tenant, name, value, seq)
        SELECT c->>1, label.key, label.value, seq
        FROM fresh, jsonb_each_text(c->13) AS label WHERE c->13 <> '{}'
    )
    SELECT array_agg(n) INTO accepted FROM fresh;
END $$;
