-- Writing what the client has decided: for all commands that have no function of their own here.
--
-- Each element of `commands` is {"expects": […], "until": seconds or null, "changes": […]}: its
-- changes are written if everything that it expects is so and `until` has not come. Answers an
-- array of booleans. lock_rows() has locked the runs, locks, dead letters and records that are
-- expected; keys, unique slots and new lanes are watched over by unique indexes, whose violation
-- undoes the whole batch.
CREATE FUNCTION write_decisions(commands jsonb, wall double precision, mono double precision,
                                OUT written boolean[])
LANGUAGE plpgsql AS $$
DECLARE
    reserved boolean := reserve_positions();  -- also noticed by those who listen by polling
    unit jsonb;
    change jsonb;
    is_valid boolean;
BEGIN
    FOR unit IN SELECT jsonb_array_elements(commands) LOOP
        is_valid := coalesce(mono < (unit->>'until')::double precision, true)
            AND NOT EXISTS (SELECT FROM jsonb_array_elements(unit->'expects') AS x (e)
                            WHERE matches(e) IS NOT TRUE);
        IF is_valid THEN
            FOR change IN SELECT jsonb_array_elements(unit->'changes') LOOP
                PERFORM write_change(change, wall, mono);
            END LOOP;
        END IF;
        written := written || is_valid;
    END LOOP;
END $$;

-- Whether a fact is as it was: an expectation as `adapters/postgres/changes.py` sends it. Behind
-- its kind and name come the values that were seen, nulls for what was not there.
CREATE FUNCTION matches(e jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    seen jsonb := e - 0 - 0;
BEGIN
    RETURN CASE e->>0
        WHEN 'run' THEN seen = coalesce(
            (SELECT jsonb_build_array(state, epoch) FROM all_runs WHERE id = e->>1), '[null, null]')
        WHEN 'lease' THEN seen = (
            SELECT jsonb_build_array(lease_until) FROM open_runs WHERE id = e->>1)
        WHEN 'key' THEN e->>3 IS NOT DISTINCT FROM (
            SELECT id FROM requests WHERE tenant = e->>1 AND key = e->>2)
        WHEN 'slot' THEN e->>3 IS NOT DISTINCT FROM (
            SELECT id FROM open_runs WHERE is_unique AND tenant = e->>1 AND pipeline = e->>2
            AND state IN ('queued', 'running', 'paused'))
        WHEN 'checkpoint' THEN (e->>4)::bigint IS NOT DISTINCT FROM (
            SELECT epoch FROM checkpoints WHERE run = e->>1 AND step = e->>2 AND key = e->>3)
        WHEN 'quarantined' THEN (e->>3)::bigint = (
            SELECT count(*) FROM quarantine WHERE run = e->>1 AND step = e->>2)
        WHEN 'record' THEN e->>2 IS NOT DISTINCT FROM (
            SELECT version FROM records WHERE key = e->>1)
        WHEN 'lane' THEN e->>2 IS NOT DISTINCT FROM (SELECT head FROM lanes WHERE name = e->>1)
        WHEN 'lock' THEN seen = coalesce(
            (SELECT jsonb_build_array(epoch, token, lease_until) FROM locks WHERE name = e->>1),
            '[null, null, null]')
        WHEN 'letter' THEN seen = coalesce(
            (SELECT jsonb_build_array(true, closed) FROM dead_letters WHERE id = e->>1),
            '[false, null]')
    END;
END $$;

-- Write one change: its kind, and then what `adapters/postgres/changes.py` says.
CREATE FUNCTION write_change(c jsonb, wall double precision, mono double precision) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    CASE c->>0
        WHEN 'submit' THEN
            IF submit(jsonb_build_array(c->1), wall, mono) IS NULL THEN
                RAISE unique_violation;
            END IF;
        WHEN 'succeed' THEN PERFORM succeed(jsonb_build_array(jsonb_set(
            c->1, '{1}', (SELECT to_jsonb(epoch) FROM open_runs WHERE id = c->1->>0))), wall, mono);
        WHEN 'run' THEN
            UPDATE open_runs o SET
                (state, epoch, attempts, attempt_limit, lease_until, available, due, delay,
                 finished, holds_lane, reason, error, progress) = (
                SELECT p.state, p.epoch, p.attempts, p.attempt_limit, p.lease_until, p.available,
                       p.due, p.delay, p.finished, p.holds_lane, p.reason, p.error, p.progress
                FROM jsonb_populate_record(o, c->2) AS p)
            WHERE o.id = c->>1;
        WHEN 'event' THEN  -- a dead letter has only one
            UPDATE open_runs SET events = events + 1 WHERE id = c->>1;
            INSERT INTO events (run, seq, type, at, data)
            SELECT c->>1, coalesce((SELECT events FROM open_runs WHERE id = c->>1), 1), c->>2,
                   wall, c->>3;
        WHEN 'checkpoint' THEN
            PERFORM take_checkpoint(c->1->>'run', c->1->>'step', c->1->>'key');
            INSERT INTO checkpoints SELECT * FROM jsonb_populate_record(NULL::checkpoints, c->1);
        WHEN 'quarantine' THEN
            INSERT INTO quarantine (run, step, key, value, reason, at)
            SELECT run, step, key, value, c->>4, wall FROM take_checkpoint(c->>1, c->>2, c->>3);
        WHEN 'letter' THEN
            INSERT INTO dead_letters (id, source, reason, attributes, tenant, run, body, created)
            VALUES (c->>1, c->>2, c->>3, c->>4, c->>5, c->>6, decode(c->>7, 'base64'), wall)
            ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, closed = NULL,
                                           attributes = excluded.attributes, resolution = NULL
            WHERE dead_letters.run IS NOT NULL;
        WHEN 'close' THEN
            UPDATE dead_letters SET closed = wall, resolution = c->>2 WHERE id = c->>1;
        WHEN 'audit' THEN
            INSERT INTO audit (at, actor, action, target, reason)
            VALUES (wall, c->>1, c->>2, c->>3, c->>4);
        WHEN 'lock' THEN
            DELETE FROM locks WHERE name = c->1->>'name';
            INSERT INTO locks SELECT * FROM jsonb_populate_record(NULL::locks, c->1);
        WHEN 'lane' THEN  -- never gone in between: submits wait for its row
            UPDATE lanes SET head = c->>3 WHERE name = c->>1;
            IF NOT FOUND THEN
                INSERT INTO lanes (name, "order", head) VALUES (c->>1, c->>2, c->>3);
            END IF;
        WHEN 'tenant' THEN
            DELETE FROM tenants WHERE tenant = c->>1;
            INSERT INTO tenants SELECT c->>1, (c->>2)::bigint WHERE c->>2 IS NOT NULL;
        WHEN 'record' THEN
            DELETE FROM records WHERE key = c->1->>'key';
            INSERT INTO records SELECT * FROM jsonb_populate_record(NULL::records, c->1);
        WHEN 'remove_record' THEN DELETE FROM records WHERE key = c->>1;
        WHEN 'remove' THEN PERFORM remove_run(c->>1);
    END CASE;
END $$;

-- Take a checkpoint away. Its event stays: it gets a row of its own.
CREATE FUNCTION take_checkpoint(of_run text, of_step text, of_key text) RETURNS SETOF checkpoints
LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM checkpoints WHERE run = of_run AND step = of_step AND key = of_key
        RETURNING *
    ), event AS (
        INSERT INTO events (position, run, seq, type, at, data)
        SELECT position, run, event, step_event(skipped), at, record FROM gone
        WHERE event IS NOT NULL
    )
    SELECT * FROM gone
$$;

-- Delete a run with all that belongs to it.
CREATE FUNCTION remove_run(of_run text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM checkpoints WHERE run = of_run;
    DELETE FROM events WHERE run = of_run;
    DELETE FROM logs WHERE run = of_run;
    DELETE FROM quarantine WHERE run = of_run;
    DELETE FROM dead_letters WHERE id = 'run:' || of_run;
    DELETE FROM labels l USING requests q, jsonb_each_text(q.labels::jsonb) AS label
    WHERE q.id = of_run AND l.tenant = q.tenant AND l.name = label.key AND l.value = label.value
      AND l.seq = q.seq;
    DELETE FROM open_runs WHERE id = of_run;
    DELETE FROM results WHERE id = of_run;
    DELETE FROM requests WHERE id = of_run;
END $$;
