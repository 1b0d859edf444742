-- The outbox: committed events in order, below everything that may still be on its way (see
-- reserve_positions). In this order: a position taken after the first statement is above `highest`;
-- a writer that has vanished from the locks in the second has committed, so that the third sees
-- what it wrote. Each table is read by its index, which is why the view all_events is not asked.
-- (No result has only one of its positions above `upto`: that is a number of the sequence, which
-- never stops between the two.) Answers arrays in the order of `Event`.
CREATE FUNCTION next_events(after bigint, most bigint) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    highest bigint := (SELECT last_value FROM positions);
    upto bigint;
BEGIN
    SELECT least(highest, min(highest - ((highest - objid::bigint) & 2147483647))) INTO upto
    FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 'events'::regclass::oid AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND pid <> pg_backend_pid();
    RETURN (
        SELECT coalesce(json_agg(json_build_array(
            e.run, e.seq, e.type, e.at, e.data, coalesce(q.tenant, d.tenant),
            coalesce(q.pipeline, ''), e.position)
            ORDER BY e.position), '[]')
        FROM (
            SELECT * FROM (
                (SELECT e.position, e.run, e.seq, e.type, e.at, e.data FROM events e
                 WHERE e.position > after AND e.position <= upto ORDER BY e.position LIMIT most)
                UNION ALL
                (SELECT q.seq, q.id, 1, 'run.queued', q.created, '{}' FROM requests q
                 WHERE q.seq > after AND q.seq <= upto ORDER BY q.seq LIMIT most)
                UNION ALL
                (SELECT p.position, p.run, p.event, step_event(p.skipped), p.at, p.record
                 FROM checkpoints p
                 WHERE p.position > after AND p.position <= upto ORDER BY p.position LIMIT most)
                UNION ALL
                SELECT f.position, s.id, f.seq, f.type, s.finished, f.data
                FROM (SELECT * FROM results r WHERE r.position > after AND r.position <= upto
                      ORDER BY r.position LIMIT most) AS s, final_events(s) AS f
                WHERE f.position > after
            ) AS all_of_them ORDER BY position LIMIT most
        ) AS e LEFT JOIN requests q ON q.id = e.run LEFT JOIN dead_letters d ON d.id = e.run
    );
END $$;
