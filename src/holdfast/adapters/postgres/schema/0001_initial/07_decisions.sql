-- Writing what the client has decided: for all commands that have no function of their own here.
--
-- Each element of `given` is {"expects": […], "until": seconds or null, "changes": […]}: its
-- changes are written if everything that it expects is so and `until` has not come. Answers an
-- array of booleans. lock_rows() has locked the runs, locks and dead letters that are expected;
-- keys, unique slots and new names are watched over by unique indexes, whose violation undoes the
-- whole batch.
CREATE FUNCTION write_decisions(given jsonb, wall double precision, mono double precision)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    unit jsonb;
    change jsonb;
    is_valid boolean;
    answer jsonb := '[]';
BEGIN
    FOR unit IN SELECT jsonb_array_elements(given) LOOP
        is_valid := coalesce(mono < (unit->>'until')::double precision, true)
            AND NOT EXISTS (SELECT FROM jsonb_array_elements(unit->'expects') AS x (e)
                            WHERE is_so(e) IS NOT TRUE);
        IF is_valid THEN
            FOR change IN SELECT jsonb_array_elements(unit->'changes') LOOP
                PERFORM write_change(change, wall, mono);
            END LOOP;
        END IF;
        answer := answer || to_jsonb(is_valid);
    END LOOP;
    RETURN answer;
END $$;

-- Whether a fact is as it was: an expectation as `adapters/decisions.py` makes it. Behind its kind
-- and name come the values that were seen, nulls for what was not there.
CREATE FUNCTION is_so(e jsonb) RETURNS boolean
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
            (SELECT jsonb_build_array(epoch, token) FROM locks WHERE name = e->>1), '[null, null]')
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
            IF submit(jsonb_build_array(c->1), wall, mono) <> '[]' THEN
                RAISE unique_violation;
            END IF;
        WHEN 'succeed' THEN PERFORM succeed(jsonb_build_array(jsonb_set(
            c->1, '{1}', (SELECT to_jsonb(epoch) FROM open_runs WHERE id = c->1->>0))), wall, mono);
        WHEN 'run' THEN PERFORM change_run(c->>1, c->2);
        WHEN 'event' THEN PERFORM append_event(c->>1, c->>2, c->>3, wall);
        WHEN 'letter_event' THEN
            PERFORM reserve_positions();
            INSERT INTO events (run, seq, type, at, data) VALUES (c->>1, 1, c->>2, wall, c->>3);
        WHEN 'checkpoint' THEN
            PERFORM take_checkpoint(c->>1, c->>2, c->>3);
            INSERT INTO checkpoints (run, step, key, value, checksum, schema, fingerprint, record,
                                     epoch)
            VALUES (c->>1, c->>2, c->>3, c->>4, c->>5, c->>6, c->>7, c->>8, (c->>9)::bigint);
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
            UPDATE locks SET epoch = (c->>2)::bigint, token = NULL, owner = '', acquired = NULL,
                             lease_until = NULL
            WHERE name = c->>1;
        WHEN 'lane' THEN
            UPDATE lanes SET head = c->>3 WHERE name = c->>1;
            IF NOT FOUND THEN
                INSERT INTO lanes (name, "order", head) VALUES (c->>1, c->>2, c->>3);
            END IF;
        WHEN 'tenant' THEN
            DELETE FROM tenants WHERE tenant = c->>1;
            INSERT INTO tenants SELECT c->>1, (c->>2)::bigint WHERE c->>2 IS NOT NULL;
        WHEN 'record' THEN
            UPDATE records SET (value, version, updated, lease_until, lease_ttl) = (
                c->>2, c->>3, (c->>4)::double precision, (c->>5)::double precision,
                (c->>6)::double precision)
            WHERE key = c->>1;
            IF NOT FOUND THEN
                INSERT INTO records VALUES (c->>1, c->>2, c->>3, (c->>4)::double precision,
                                            (c->>5)::double precision, (c->>6)::double precision);
            END IF;
        WHEN 'remove_record' THEN DELETE FROM records WHERE key = c->>1;
        WHEN 'remove' THEN PERFORM remove_run(c->>1);
    END CASE;
    PERFORM nextval('positions');  -- noticed by those who listen by polling
END $$;

-- Set fields of a run; `fields` are named as the columns.
CREATE FUNCTION change_run(of_run text, fields jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE open_runs o SET
        (state, epoch, attempts, attempt_limit, lease_until, available, due, delay, finished,
         holds_lane, reason, error, progress) = (
        SELECT p.state, p.epoch, p.attempts, p.attempt_limit, p.lease_until, p.available, p.due,
               p.delay, p.finished, p.holds_lane, p.reason, p.error, p.progress
        FROM jsonb_populate_record(o, fields) AS p)
    WHERE o.id = of_run;
END $$;

-- Take a checkpoint away. Its event stays: it gets a row of its own.
CREATE FUNCTION take_checkpoint(of_run text, of_step text, of_key text) RETURNS SETOF checkpoints
LANGUAGE plpgsql AS $$
DECLARE
    gone checkpoints;
BEGIN
    DELETE FROM checkpoints WHERE run = of_run AND step = of_step AND key = of_key
    RETURNING * INTO gone;
    IF gone.event IS NOT NULL THEN
        INSERT INTO events (position, run, seq, type, at, data)
        VALUES (gone.position, gone.run, gone.event, step_event(gone.skipped), gone.at,
                gone.record);
    END IF;
    IF gone.run IS NOT NULL THEN
        RETURN NEXT gone;
    END IF;
END $$;

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
