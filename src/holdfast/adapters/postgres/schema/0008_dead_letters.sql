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
    SELECT json_agg(json_build_array(e.run, e.seq, e.type, seconds(e.at), e.data, q.tenant, q.pipeline, e.position)
                    ORDER BY e.position)
    INTO answer FROM next_events(confirmed, least(highest, lowest), (given->>'limit')::bigint) AS e,
                     LATERAL (SELECT r.tenant, r.pipeline FROM requests r WHERE r.id = e.run OFFSET 0) AS q;
    RETURN coalesce(answer, '[]');
END $$;

-- The first `most` events above `after` and not above `upto`, as all_events shows them. Each table is read by its index,
-- which is why the view itself is not asked. (No result has only one of its positions above `upto`: that is a number of
-- the sequence, which never stops between the two.)
CREATE FUNCTION next_events(after bigint, upto bigint, most bigint) RETURNS SETOF all_events
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT found.* FROM (
        (SELECT e.* FROM events e WHERE e.position > after AND e.position <= upto ORDER BY e.position LIMIT most)
        UNION ALL
        (SELECT q.seq, q.id, 1::bigint, 'run.queued', q.created, '{}' FROM requests q
         WHERE q.seq > after AND q.seq <= upto ORDER BY q.seq LIMIT most)
        UNION ALL
        (SELECT p.position, p.run, p.event, step_event(p.skipped), p.at, p.record FROM checkpoints p
         WHERE p.position > after AND p.position <= upto ORDER BY p.position LIMIT most)
        UNION ALL
        SELECT f.position, s.id, f.seq, f.type, s.finished, f.data
        FROM (SELECT * FROM results r WHERE r.position > after AND r.position <= upto ORDER BY r.position LIMIT most) AS s,
             final_events(s) AS f WHERE f.position > after
    ) AS found ORDER BY found.position LIMIT most;
END $$;

CREATE FUNCTION confirm_outbox(given jsonb) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO meta (name, value) VALUES ('outbox_confirmed', given->>'position')
    ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value::bigint < excluded.value::bigint;
    RETURN 'null';
END $$;
