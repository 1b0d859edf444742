-- Dead letters, and the outbox that a relay follows.

CREATE FUNCTION bury(given jsonb, wall timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO dead_letters (id, source, reason, body, attributes, tenant, created)
    VALUES (given->>'id', given->>'source', given->>'reason', decode(given->>'body', 'base64'),
            given->>'attributes', given->>'tenant', wall)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;

CREATE FUNCTION close_letter(which text, how text, wall timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE dead_letters SET closed = wall, resolution = how WHERE id = which AND closed IS NULL;
    RETURN FOUND;
END $$;

CREATE FUNCTION mark_redriven(given jsonb, wall timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT close_letter(given->>'id', 'redriven', wall) THEN
        RETURN false;
    END IF;
    PERFORM write_audit(wall, given->>'actor', 'dlq.redrive', given->>'id', '');
    RETURN true;
END $$;

CREATE FUNCTION discard(given jsonb, wall timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT close_letter(given->>'id', 'discarded', wall) THEN
        RETURN false;
    END IF;
    UPDATE open_runs SET holds_lane = false
    WHERE id = (SELECT run FROM dead_letters WHERE id = given->>'id') AND holds_lane;
    PERFORM nextval('positions');
    PERFORM write_audit(wall, given->>'actor', 'dlq.discard', given->>'id', given->>'reason');
    RETURN true;
END $$;

-- Events that no relay has confirmed, below everything that may still be on its way (see reserve_positions). In this
-- order: a position taken after the first statement is above `highest`; a writer that has vanished from the locks in
-- the second has committed, so that the third sees what it wrote. Answers arrays in the order of `Event`.
CREATE FUNCTION read_outbox(given jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    confirmed bigint := coalesce((SELECT value::bigint FROM meta WHERE name = 'outbox_confirmed'), 0);
    highest bigint := (SELECT last_value FROM positions);
    lowest bigint;
    answer text;
BEGIN
    SELECT min(highest - ((highest - objid::bigint) & 2147483647)) INTO lowest FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 'events'::regclass::oid AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid();
    SELECT json_agg(json_build_array(run, seq, type, seconds(at), data, tenant, pipeline,
                                     position) ORDER BY position)
    INTO answer FROM (
        SELECT e.run, e.seq, e.type, e.at, e.data, q.tenant, q.pipeline, e.position
        FROM events e JOIN requests q ON q.id = e.run
        WHERE e.position > confirmed AND e.position <= least(highest, coalesce(lowest, highest))
        ORDER BY e.position LIMIT (given->>'limit')::bigint) AS waiting;
    RETURN coalesce(answer, '[]');
END $$;

CREATE FUNCTION confirm_outbox(given jsonb) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO meta (name, value) VALUES ('outbox_confirmed', given->>'position')
    ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value::bigint < excluded.value::bigint;
    RETURN 'null';
END $$;
