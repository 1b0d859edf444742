-- What a worker writes under its lease. Stale commands are not accepted.

-- Extend leases. Elements of `commands`: 0 run, 1 epoch.
CREATE FUNCTION renew(commands jsonb, ttl double precision, mono double precision,
                      OUT accepted bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    WITH leased AS MATERIALIZED (
        SELECT n, tid FROM held(commands, mono)
    ), extended AS (
        UPDATE open_runs r SET lease_until = greatest(r.lease_until, mono + ttl),
                               lease_ttl = greatest(r.lease_ttl, ttl)
        FROM (SELECT DISTINCT tid FROM leased) AS l WHERE r.ctid = l.tid
    )
    SELECT array_agg(n) INTO accepted FROM leased;
END $$;

-- Store results of steps and items that have none yet; for others it raises unique_violation, and
-- write_decisions() does it. Elements of `commands`:
--   0 run, 1 epoch, 2 step, 3 key, 4 value, 5 checksum, 6 schema, 7 fingerprint, 8 record,
--   9 skipped
CREATE FUNCTION save_checkpoints(commands jsonb, wall double precision, mono double precision,
                                 OUT accepted bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    reserved boolean := reserve_positions();
BEGIN
    WITH leased AS MATERIALIZED (
        SELECT n, c, tid, (run).events AS before, c->>3 = '' AS is_step FROM held(commands, mono)
    ), numbered AS (
        SELECT *, CASE WHEN is_step THEN
                      before + row_number() OVER (PARTITION BY tid, is_step ORDER BY n) END AS event
        FROM leased
    ), counted AS (
        UPDATE open_runs r SET events = latest.event
        FROM (SELECT tid, max(event) AS event FROM numbered WHERE is_step GROUP BY tid) AS latest
        WHERE r.ctid = latest.tid
    ), saved AS (
        INSERT INTO checkpoints (run, step, key, epoch, value, checksum, schema, fingerprint,
                                 record, event, position, at, skipped)
        SELECT c->>0, c->>2, c->>3, (c->>1)::bigint, c->>4, c->>5, c->>6, c->>7, c->>8, event,
               CASE WHEN event IS NOT NULL THEN nextval('positions') END, wall, (c->>9)::boolean
        FROM numbered
    )
    SELECT array_agg(n) INTO accepted FROM leased;
END $$;

-- Elements of `commands`: 0 run, 1 epoch, 2 progress; each run once.
CREATE FUNCTION save_progress(commands jsonb, mono double precision, OUT accepted bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    WITH leased AS MATERIALIZED (
        SELECT n, c, tid FROM held(commands, mono)
    ), saved AS (
        UPDATE open_runs r SET progress = k.c->>2 FROM leased k WHERE r.ctid = k.tid
    )
    SELECT array_agg(n) INTO accepted FROM leased;
END $$;

-- Append to the logs of runs, up to `most` lines each. Elements of `commands`:
--   0 run, 1 epoch, 2 level, 3 step, 4 message, 5 fields
CREATE FUNCTION append_logs(commands jsonb, most bigint, wall double precision,
                            mono double precision, OUT accepted bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    WITH leased AS MATERIALIZED (
        SELECT n, c, c->>0 AS of_run FROM held(commands, mono)
    ), numbered AS (
        SELECT k.*, (SELECT coalesce(max(l.n), 0) FROM logs l WHERE l.run = k.of_run)
                    + row_number() OVER (PARTITION BY k.of_run ORDER BY k.n) AS line
        FROM leased k
    ), written AS (
        INSERT INTO logs (run, n, at, level, step, message, fields)
        SELECT of_run, line, wall, c->>2, c->>3, c->>4, c->>5 FROM numbered WHERE line <= most
        ORDER BY of_run, line
    )
    SELECT array_agg(n) INTO accepted FROM leased;
END $$;

-- End attempts that succeeded; each run once. Elements of `commands` are Settles:
--   0 run, 1 epoch, 3 result, 7 progress, 8 last (a SaveCheckpoint of a step, or null),
--   10 execution_ms, 11 checksum of the result
-- A last step that has a checkpoint already raises unique_violation, as in save_checkpoints().
CREATE FUNCTION succeed(commands jsonb, wall double precision, mono double precision,
                        OUT accepted bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    reserved boolean := reserve_positions();
    repeated boolean;
BEGIN
    WITH leased AS MATERIALIZED (
        SELECT n, c, nullif(c->8, 'null') AS p, tid, run, old.is_there
        FROM held(commands, mono) LEFT JOIN LATERAL (
            SELECT true AS is_there FROM checkpoints s
            WHERE s.run = c->>0 AND s.step = c->8->>2 AND s.key = '' OFFSET 0) AS old ON true
    ), closed AS (
        DELETE FROM open_runs o USING leased k WHERE o.ctid = k.tid
    ), done AS (
        INSERT INTO results (id, events, epoch, attempts, attempt_limit, started, finished, worker,
                             execution_ms, progress, result, result_checksum, step, skipped, value,
                             checksum, schema, fingerprint, record)
        SELECT c->>0, (run).events + CASE WHEN p IS NULL THEN 1 ELSE 2 END, (c->>1)::bigint,
               (run).attempts, (run).attempt_limit, (run).started, wall, (run).worker,
               (c->>10)::bigint, c->>7, c->>3, c->>11, p->>2, (p->>9)::boolean,
               nullif(p->>4, c->>3), p->>5, p->>6, p->>7, p->>8
        FROM leased
    )
    SELECT array_agg(n), bool_or(is_there) INTO accepted, repeated FROM leased;
    IF repeated THEN
        RAISE unique_violation;
    END IF;
END $$;
