-- What people and the sweeper do to runs: cancel, pause, resume, rescue, prune. A refusal is answered as
-- [state] or [state, run in the way]; what was done as null.

CREATE FUNCTION cancel(given jsonb, wall timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    was text := state_of(given->>'run');
BEGIN
    IF was IN ('queued', 'running', 'paused') THEN
        UPDATE open_runs SET state = 'cancelled', epoch = epoch + 1, finished = wall, reason = nullif(given->>'reason', ''),
                        lease_until = NULL, available = NULL, due = NULL
        WHERE id = given->>'run';
        PERFORM note_intervention(given, 'run.cancelled', 'run.cancel', wall);
        RETURN 'null';
    END IF;
    RETURN jsonb_build_array(was);
END $$;

CREATE FUNCTION pause(given jsonb, wall timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    was text := state_of(given->>'run');
BEGIN
    IF was IN ('queued', 'running') THEN
        UPDATE open_runs SET state = 'paused', epoch = epoch + 1, attempts = attempts - (state = 'running')::integer,
                        reason = nullif(given->>'reason', ''), lease_until = NULL, available = NULL, due = NULL
        WHERE id = given->>'run';
        PERFORM note_intervention(given, 'run.paused', 'run.pause', wall);
        RETURN 'null';
    END IF;
    RETURN jsonb_build_array(was);
END $$;

-- The unique slot of the run, if it needs one, was locked by lock_rows(): nobody can take it in between.
CREATE FUNCTION resume(given jsonb, wall timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    r open_runs;
    other text;
BEGIN
    SELECT * INTO r FROM open_runs WHERE id = given->>'run';
    IF r.state IS NULL OR r.state NOT IN ('paused', 'failed') THEN
        RETURN jsonb_build_array(state_of(given->>'run'));
    END IF;
    SELECT o.id INTO other FROM open_runs o
    WHERE r.is_unique AND o.is_unique AND o.tenant = r.tenant AND o.pipeline = r.pipeline AND o.id <> r.id
      AND o.state IN ('queued', 'running', 'paused');
    IF FOUND THEN
        RETURN jsonb_build_array(r.state, other);
    END IF;
    UPDATE open_runs SET state = 'queued', available = NULL, due = NULL, finished = NULL, error = NULL, reason = NULL,
                    holds_lane = false, attempt_limit = attempts + (given->>'attempts')::bigint
    WHERE id = r.id;
    PERFORM close_letter('run:' || r.id, 'redriven', wall);
    PERFORM note_intervention(given || '{"reason": ""}', 'run.resumed', 'run.resume', wall);
    RETURN 'null';
END $$;

CREATE FUNCTION note_intervention(given jsonb, event text, action text, wall timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM append_event(given->>'run', event, wall,
                         '{"actor":' || quoted(given->>'actor') || ',"reason":' || quoted(given->>'reason') || '}');
    PERFORM write_audit(wall, given->>'actor', action, given->>'run', given->>'reason');
END $$;

-- Rescue runs whose lease has ended. Answers [[run, new state], …].
CREATE FUNCTION sweep(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    why text;
    swept jsonb := '[]';
BEGIN
    FOR r IN
        SELECT id, attempts, attempt_limit FROM open_runs
        WHERE state = 'running' AND (lease_until <= mono OR lease_until > mono + lease_ttl)
        ORDER BY lease_until, seq LIMIT (given->>'limit')::bigint
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        IF r.attempts >= r.attempt_limit THEN
            why := 'the worker vanished ' || r.attempts
                   || ' times while it had this run; look at what kills it, then resume the run';
            PERFORM fail(r.id, '{"name":"WorkerLost","message":' || quoted(why) || '}', 'WorkerLost: ' || why, wall);
            swept := swept || jsonb_build_array(jsonb_build_array(r.id, 'failed'));
        ELSE
            UPDATE open_runs SET state = 'queued', available = NULL, due = NULL, lease_until = NULL WHERE id = r.id;
            PERFORM append_event(r.id, 'run.worker_lost', wall, '{"attempt":' || r.attempts || '}');
            swept := swept || jsonb_build_array(jsonb_build_array(r.id, 'queued'));
        END IF;
    END LOOP;
    RETURN swept;
END $$;

-- Delete what is old, with all that belongs to it; not what a relay has yet to send, nor what holds a lane. Answers
-- [[run, tenant], …], the oldest first.
CREATE FUNCTION prune(given jsonb, wall timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    keep interval := span((given->>'keep')::double precision);
    keep_failed interval := span((given->>'keep_failed')::double precision);
    confirmed bigint := coalesce((SELECT value::bigint FROM meta WHERE name = 'outbox_confirmed'), 0);
    most bigint := (given->>'limit')::bigint;
    succeeded text[];
    others text[];
    old text[];
    answer text;
BEGIN
    SELECT array_agg(id) INTO succeeded FROM (
        SELECT s.id, s.finished FROM results s
        WHERE confirmed = 0 OR s.position <= confirmed
        ORDER BY s.position LIMIT most
        FOR UPDATE SKIP LOCKED) AS oldest WHERE finished <= wall - keep;
    SELECT array_agg(id) INTO others FROM (
        SELECT o.id FROM open_runs o
        WHERE o.state IN ('failed', 'cancelled') AND NOT o.holds_lane
          AND o.finished <= wall - CASE WHEN o.state = 'failed' THEN keep_failed ELSE keep END
          AND NOT is_unsent(o.id, confirmed)
        ORDER BY o.finished LIMIT most - coalesce(cardinality(succeeded), 0)
        FOR UPDATE SKIP LOCKED) AS found;
    old := coalesce(succeeded, '{}') || coalesce(others, '{}');
    IF cardinality(old) = 0 THEN
        RETURN '[]';
    END IF;
    SELECT json_agg(json_build_array(q.id, q.tenant) ORDER BY coalesce(s.finished, o.finished), q.seq) INTO answer
    FROM requests q LEFT JOIN results s ON s.id = q.id LEFT JOIN open_runs o ON o.id = q.id WHERE q.id = ANY (old);
    DELETE FROM checkpoints WHERE run = ANY (old);
    DELETE FROM events WHERE run = ANY (old);
    DELETE FROM logs WHERE run = ANY (old);
    DELETE FROM quarantine WHERE run = ANY (old);
    DELETE FROM dead_letters WHERE id IN (SELECT 'run:' || run FROM unnest(old) AS run);
    DELETE FROM open_runs WHERE id = ANY (old);
    DELETE FROM results WHERE id = ANY (old);
    DELETE FROM requests WHERE id = ANY (old);
    RETURN answer;
END $$;

-- Whether a relay that is at work (some position is confirmed) has yet to send an event of the run.
CREATE FUNCTION is_unsent(of_run text, confirmed bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN confirmed > 0 AND EXISTS (SELECT FROM events WHERE run = of_run AND position > confirmed);
END $$;

CREATE FUNCTION define_lane(given jsonb) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lanes (name, sort, head) VALUES (given->>'name', given->>'order', given->>'head')
    ON CONFLICT (name) DO UPDATE SET head = excluded.head WHERE lanes.head <> excluded.head;
    RETURN (SELECT to_json(sort) FROM lanes WHERE name = given->>'name');
END $$;
