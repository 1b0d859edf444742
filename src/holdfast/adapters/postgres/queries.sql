-- The reads, and at the end one write. Each answers one JSON value; `-- name:` begins the next one, `:s.` stands for the
-- store's schema. Reads are planned for the values they are given (`$1 IS NULL` disappears), so every filter finds its index.

-- name: run
SELECT coalesce(json_agg(:s.run_document(r)), '[]') FROM :s.runs r WHERE id = $1

-- name: over
SELECT coalesce(json_agg(:s.run_document(r)), '[]') FROM :s.runs r
WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json))) AND state IN ('succeeded', 'failed', 'cancelled')

-- name: runs
SELECT coalesce(json_agg(:s.run_document(r) ORDER BY r.seq DESC), '[]') FROM (
    SELECT r.* FROM :s.runs r LEFT JOIN :s.open_runs o ON o.id = r.id LEFT JOIN :s.results s ON s.id = r.id
    WHERE ($1::text IS NULL OR r.tenant = $1) AND ($2::text IS NULL OR r.pipeline = $2)
      AND ($3::text IS NULL OR o.state = $3 OR $3 = 'succeeded' AND s.id IS NOT NULL)
      AND ($4::text IS NULL OR r.lane = $4) AND ($5::text IS NULL OR r.key = $5)
      AND ($6::text IS NULL OR r.id >= $6 AND r.id < $6 || U&'\+10FFFF')
      AND ($7::bigint IS NULL OR r.seq < $7)
    -- Ids begin with their time. A long prefix may name a few old runs, which nobody should look for from the newest back:
    -- an order that no index has makes the server find them by id.
    ORDER BY CASE WHEN length($6) > 5 THEN r.seq + 0 ELSE r.seq END DESC LIMIT $8) AS r

-- name: runs_aside
-- The same for the states that have an index of their own.
SELECT coalesce(json_agg(:s.run_document(r) ORDER BY r.seq DESC), '[]') FROM (
    SELECT r.* FROM :s.open_runs o JOIN :s.runs r ON r.id = o.id
    WHERE ($1::text IS NULL OR o.tenant = $1) AND ($2::text IS NULL OR o.pipeline = $2) AND o.state = $3
      AND ($4::text IS NULL OR o.lane = $4) AND ($5::text IS NULL OR r.key = $5)
      AND ($6::text IS NULL OR o.id >= $6 AND o.id < $6 || U&'\+10FFFF')
      AND ($7::bigint IS NULL OR o.seq < $7)
    ORDER BY o.seq DESC LIMIT $8) AS r

-- name: count
-- What has succeeded is what was asked and is not open: one count without a join.
WITH open AS MATERIALIZED (
    SELECT o.state, count(*) AS n FROM :s.open_runs o
    WHERE ($1::text IS NULL OR o.tenant = $1) AND ($2::text IS NULL OR o.pipeline = $2)
      AND ($4::text IS NULL OR o.lane = $4)
      AND ($5::text IS NULL OR EXISTS (SELECT FROM :s.requests q WHERE q.id = o.id AND q.key = $5))
      AND ($6::text IS NULL OR o.id >= $6 AND o.id < $6 || U&'\+10FFFF')
    GROUP BY o.state
), total AS (
    SELECT count(*) AS n FROM :s.requests q
    WHERE ($3::text IS NULL OR $3 = 'succeeded')
      AND ($1::text IS NULL OR q.tenant = $1) AND ($2::text IS NULL OR q.pipeline = $2)
      AND ($4::text IS NULL OR q.lane = $4) AND ($5::text IS NULL OR q.key = $5)
      AND ($6::text IS NULL OR q.id >= $6 AND q.id < $6 || U&'\+10FFFF')
)
SELECT coalesce(json_object_agg(state, n), '{}') FROM (
    SELECT state, n FROM open WHERE $3::text IS NULL OR state = $3
    UNION ALL
    SELECT 'succeeded', n - coalesce((SELECT sum(n) FROM open), 0) FROM total
) AS counted WHERE n > 0

-- name: checkpoints
SELECT coalesce(json_agg(json_build_object(
    'step', step, 'key', key, 'value', value, 'checksum', checksum, 'schema', schema, 'fingerprint', fingerprint,
    'record', record, 'epoch', epoch) ORDER BY step, key), '[]')
FROM :s.all_checkpoints WHERE run = $1 AND ($2::text IS NULL OR step = $2)

-- name: quarantined
SELECT coalesce(json_agg(json_build_array(step, key, reason) ORDER BY id), '[]') FROM :s.quarantine WHERE run = $1

-- name: history
SELECT coalesce(json_agg(json_build_array(
    e.run, e.seq, e.type, :s.seconds(e.at), e.data, r.tenant, r.pipeline, e.position) ORDER BY e.seq), '[]')
FROM :s.all_events e JOIN :s.requests r ON r.id = e.run WHERE e.run = $1

-- name: logs
SELECT coalesce(json_agg(json_build_array(:s.seconds(at), level, step, message, fields) ORDER BY n), '[]')
FROM :s.logs WHERE run = $1 AND n > $2::bigint AND n <= $2::bigint + $3::bigint

-- name: dead_letters
SELECT coalesce(json_agg(:s.letter_document(d) ORDER BY d.created DESC, d.id DESC), '[]') FROM (
    SELECT * FROM :s.dead_letters
    WHERE ($1::text IS NULL OR tenant = $1) AND ($2::boolean IS FALSE OR closed IS NULL)
    ORDER BY created DESC, id DESC LIMIT $3) AS d

-- name: dead_letter
SELECT coalesce(json_agg(:s.letter_document(d)), '[]') FROM :s.dead_letters d WHERE id = $1

-- name: locks
SELECT coalesce(json_agg(json_build_array(
    name, epoch, owner, :s.seconds(acquired), :s.seconds(lease_until) - :s.seconds(present.mono)) ORDER BY name), '[]')
FROM :s.locks, (SELECT coalesce(to_timestamp($1::double precision), clock_timestamp()) AS mono) AS present
WHERE token IS NOT NULL AND lease_until > present.mono AND lease_until <= present.mono + lease_ttl

-- name: lanes
SELECT coalesce(json_agg(json_build_array(
    l.name, l.sort, l.head,
    (SELECT count(*) FROM :s.open_runs r WHERE r.lane = l.name AND r.state = 'queued' AND r.due IS NULL)
    + (SELECT count(*) FROM :s.open_runs r WHERE r.lane = l.name AND r.state = 'queued' AND r.due IS NOT NULL),
    (SELECT count(*) FROM :s.open_runs r WHERE r.lane = l.name AND r.state = 'running'),
    k.owner, coalesce(k.epoch, 0),
    (SELECT r.id FROM :s.open_runs r WHERE r.lane = l.name AND r.holds_lane AND (r.state = 'running' OR r.holds_lane)
     ORDER BY r.seq LIMIT 1)
) ORDER BY l.name), '[]')
FROM (SELECT name, sort, head FROM :s.lanes
      UNION ALL
      SELECT lane, 'parallel', 'dead-letter' FROM (
          SELECT DISTINCT lane FROM :s.open_runs WHERE state = 'queued'
          UNION
          SELECT DISTINCT lane FROM :s.open_runs WHERE state = 'running') AS busy
      WHERE lane NOT IN (SELECT name FROM :s.lanes)) AS l
CROSS JOIN (SELECT coalesce(to_timestamp($1::double precision), clock_timestamp()) AS mono) AS present
LEFT JOIN :s.locks k ON k.name = 'lane:' || l.name AND k.token IS NOT NULL
    AND k.lease_until > present.mono AND k.lease_until <= present.mono + k.lease_ttl

-- name: audit
SELECT coalesce(json_agg(json_build_array(:s.seconds(at), actor, action, target, reason) ORDER BY id DESC), '[]')
FROM (SELECT * FROM :s.audit ORDER BY id DESC LIMIT $1) AS newest

-- name: ring
-- Nothing that has to be durable: the commit need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true) || pg_notify(:s.doorbell(), $1)::text

-- name: doorbell
SELECT :s.doorbell()

-- name: newest
SELECT last_value + is_called::integer FROM :s.positions

-- name: mark
-- Whether the store takes part in a move.
SELECT coalesce((SELECT value FROM :s.meta WHERE name = 'mark'), '')

-- name: forget_old_delays
-- A delay that ends later than it can was given by a clock that has since been set back: take it as over.
WITH freed AS (
    UPDATE :s.open_runs SET available = NULL, due = NULL
    WHERE state = 'queued' AND due > coalesce(to_timestamp($1::double precision), clock_timestamp()) + delay
    RETURNING 1)
SELECT count(*) FROM freed

-- name: submit_at_once
-- The one write: what lone_submit() does, as a statement that is worth preparing. It takes longer to plan than to execute.
--   $1 id, $2 tenant, $3 pipeline, $4 lane, $5 input, $6 fingerprint, $7 key, $8 unique, $9 priority, $10 delay,
--   $11 max_attempts, $12 parent; of the envelope $13 wait, $14 ring, $15 sync, $16 wall, $17 mono
WITH held AS MATERIALIZED (  -- as in lock_rows(); the time-out is set before there is anything to wait for
    SELECT FROM :s.lanes WHERE name = $4 AND sort = 'fifo' AND set_config('lock_timeout', $13, true) IS NOT NULL
    FOR NO KEY UPDATE
), present AS MATERIALIZED (
    SELECT coalesce(to_timestamp($16), clock_timestamp()) AS wall,
           set_config('lock_timeout', $13, true),
           CASE WHEN $14::text IS NOT NULL THEN pg_notify('holdfast_' || ':s.requests'::regclass::oid, $14) END,
           CASE WHEN $15::boolean THEN set_config('synchronous_commit', 'on', true) END,
           pg_try_advisory_xact_lock_shared(':s.events'::regclass::oid::integer,  -- as in reserve_positions()
                                            (nextval(':s.positions') & 2147483647)::integer)
    FROM (SELECT count(*) FROM held) AS locked
), asked AS (
    INSERT INTO :s.requests (id, tenant, pipeline, lane, input, fingerprint, key, is_unique, priority, delay, max_attempts,
                             parent, inherits, created)
    SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::boolean, $9::bigint,
           $10::double precision, $11::bigint, $12::text, false, wall FROM present
    ON CONFLICT DO NOTHING
    RETURNING seq, created
), opened AS (
    INSERT INTO :s.open_runs (id, seq, tenant, pipeline, lane, priority, size, attempt_limit, is_unique, available, due, delay)
    SELECT $1, seq, $2, $3, $4, $9, octet_length($5), $11, $8,
           CASE WHEN $10 > 0 THEN created + :s.span($10) END,
           CASE WHEN $10 > 0 THEN coalesce(to_timestamp($17), created) + :s.span($10) END,
           CASE WHEN $10 > 0 THEN :s.span($10) END FROM asked
    RETURNING id
)
SELECT CASE WHEN EXISTS (SELECT FROM opened) THEN '[]' ELSE :s.lone_submit(
    jsonb_build_array($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '[]'::jsonb),
    jsonb_build_object('wait', $13, 'wall', $16, 'mono', $17)) END
