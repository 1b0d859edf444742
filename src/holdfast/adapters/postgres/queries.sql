-- The reads. Each answers one JSON value; `-- name:` begins the next one. `:s.` stands for the
-- store's schema, `:run` for a run of all_runs as an array in the order of RunFacts, `:labelled`
-- for the numbers of the runs that have the labels in $7. Reads are planned for the values they are
-- given (`$1 IS NULL` disappears), so every filter finds its index.

-- name: run
SELECT coalesce(json_agg(:run), '[]') FROM :s.all_runs r WHERE id = $1

-- name: over
SELECT coalesce(json_agg(:run), '[]') FROM :s.all_runs r
WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)))
  AND state IN ('succeeded', 'failed', 'cancelled')

-- name: unique_runs
SELECT coalesce(json_agg(:run ORDER BY r.seq), '[]') FROM :s.open_runs o
JOIN :s.all_runs r ON r.id = o.id
WHERE o.is_unique AND o.state IN ('queued', 'running', 'paused')

-- name: runs
SELECT coalesce(json_agg(:run ORDER BY r.seq DESC), '[]') FROM (
    SELECT r.* FROM :s.all_runs r
    LEFT JOIN :s.open_runs o ON o.id = r.id LEFT JOIN :s.results s ON s.id = r.id
    WHERE ($1::text IS NULL OR r.tenant = $1) AND ($2::text IS NULL OR r.pipeline = $2)
      AND ($3::text IS NULL OR o.state = $3 OR $3 = 'succeeded' AND s.id IS NOT NULL)
      AND ($4::text IS NULL OR r.lane = $4) AND ($5::text IS NULL OR r.key = $5)
      AND ($6::text IS NULL OR r.id >= $6 AND r.id < $6 || U&'\+10FFFF')
      AND ($8::bigint IS NULL OR r.seq < $8)
      AND ($7::text IS NULL OR r.seq IN (:labelled))
    -- Ids begin with their time. A long prefix may name a few old runs, which nobody should look
    -- for from the newest back: an order that no index has makes the server find them by id.
    ORDER BY CASE WHEN length($6) > 5 THEN r.seq + 0 ELSE r.seq END DESC LIMIT $9) AS r

-- name: runs_by_state
-- The same for the states that have an index of their own.
SELECT coalesce(json_agg(:run ORDER BY r.seq DESC), '[]') FROM (
    SELECT r.* FROM :s.open_runs o JOIN :s.all_runs r ON r.id = o.id
    WHERE ($1::text IS NULL OR o.tenant = $1) AND ($2::text IS NULL OR o.pipeline = $2)
      AND o.state = $3
      AND ($4::text IS NULL OR o.lane = $4) AND ($5::text IS NULL OR r.key = $5)
      AND ($6::text IS NULL OR o.id >= $6 AND o.id < $6 || U&'\+10FFFF')
      AND ($8::bigint IS NULL OR o.seq < $8)
      AND ($7::text IS NULL OR o.seq IN (:labelled))
    ORDER BY o.seq DESC LIMIT $9) AS r

-- name: count
-- What has succeeded is what was asked and is not open: one count without a join.
WITH open AS MATERIALIZED (
    SELECT o.state, count(*) AS n FROM :s.open_runs o
    WHERE ($1::text IS NULL OR o.tenant = $1) AND ($2::text IS NULL OR o.pipeline = $2)
      AND ($4::text IS NULL OR o.lane = $4)
      AND ($5::text IS NULL OR EXISTS (SELECT FROM :s.requests q WHERE q.id = o.id AND q.key = $5))
      AND ($6::text IS NULL OR o.id >= $6 AND o.id < $6 || U&'\+10FFFF')
      AND ($7::text IS NULL OR o.seq IN (:labelled))
    GROUP BY o.state
), total AS (
    SELECT count(*) AS n FROM :s.requests q
    WHERE ($3::text IS NULL OR $3 = 'succeeded')
      AND ($1::text IS NULL OR q.tenant = $1) AND ($2::text IS NULL OR q.pipeline = $2)
      AND ($4::text IS NULL OR q.lane = $4) AND ($5::text IS NULL OR q.key = $5)
      AND ($6::text IS NULL OR q.id >= $6 AND q.id < $6 || U&'\+10FFFF')
      AND ($7::text IS NULL OR q.seq IN (:labelled))
)
SELECT coalesce(json_object_agg(state, n), '{}') FROM (
    SELECT state, n FROM open WHERE $3::text IS NULL OR state = $3
    UNION ALL
    SELECT 'succeeded', n - coalesce((SELECT sum(n) FROM open), 0) FROM total
) AS counted WHERE n > 0

-- name: checkpoints
SELECT coalesce(json_agg(c ORDER BY step, key), '[]')
FROM :s.all_checkpoints c WHERE run = $1 AND ($2::text IS NULL OR step = $2)

-- name: quarantined
SELECT coalesce(json_agg(json_build_array(step, key, reason) ORDER BY id), '[]')
FROM :s.quarantine WHERE run = $1

-- name: history
SELECT coalesce(json_agg(json_build_array(
    e.run, e.seq, e.type, e.at, e.data, r.tenant, r.pipeline, e.position) ORDER BY e.seq), '[]')
FROM :s.all_events e JOIN :s.requests r ON r.id = e.run WHERE e.run = $1

-- name: outbox
SELECT :s.next_events($1::bigint, $2::bigint)

-- name: records
-- $2 prefix, $3 behind which key, $4 limit.
SELECT json_build_object('now', :now, 'records', coalesce(json_agg(
    json_build_array(key, value, version, updated) ORDER BY key), '[]'))
FROM (SELECT * FROM :s.records
      WHERE key >= $2 AND key < $2 || U&'\+10FFFF' AND key > $3
        AND (lease_until IS NULL OR :s.lasts(lease_until, lease_ttl, :now))
      ORDER BY key LIMIT $4) AS page

-- name: logs
SELECT coalesce(json_agg(json_build_array(at, level, step, message, fields) ORDER BY n), '[]')
FROM :s.logs WHERE run = $1 AND n > $2::bigint AND n <= $2::bigint + $3::bigint

-- name: dead_letters
SELECT coalesce(json_agg(:letter ORDER BY d.created DESC, d.id DESC), '[]') FROM (
    SELECT * FROM :s.dead_letters
    WHERE ($1::text IS NULL OR tenant = $1) AND ($2::boolean IS FALSE OR closed IS NULL)
    ORDER BY created DESC, id DESC LIMIT $3) AS d LEFT JOIN :s.requests q ON q.id = d.run

-- name: dead_letter
SELECT coalesce(json_agg(:letter), '[]')
FROM :s.dead_letters d LEFT JOIN :s.requests q ON q.id = d.run WHERE d.id = $1

-- name: locks
SELECT coalesce(json_agg(json_build_array(
    name, epoch, owner, acquired, lease_until - present.mono) ORDER BY name), '[]')
FROM :s.locks, (SELECT :now AS mono) AS present
WHERE token IS NOT NULL AND :s.lasts(lease_until, lease_ttl, present.mono)

-- name: lanes
SELECT coalesce(json_agg(json_build_array(
    l.name, l."order", l.head,
    (SELECT count(*) FROM :s.open_runs r WHERE r.lane = l.name AND r.state = 'queued'),
    (SELECT count(*) FROM :s.open_runs r WHERE r.lane = l.name AND r.state = 'running'),
    k.owner, coalesce(k.epoch, 0),
    (SELECT r.id FROM :s.open_runs r WHERE r.lane = l.name AND r.holds_lane
     AND (r.state = 'running' OR r.holds_lane) ORDER BY r.seq LIMIT 1),
    (SELECT count(*) FROM :s.open_runs r
     WHERE r.lane = l.name AND r.state = 'queued' AND r.due > present.mono),
    (SELECT q.created FROM :s.open_runs r JOIN :s.requests q ON q.id = r.id
     WHERE r.lane = l.name AND r.state = 'queued' AND (r.due IS NULL OR r.due <= present.mono)
     ORDER BY r.seq LIMIT 1)
) ORDER BY l.name), '[]')
FROM (SELECT name, "order", head FROM :s.lanes
      UNION ALL
      SELECT lane, 'parallel', 'dead-letter' FROM (
          SELECT DISTINCT lane FROM :s.open_runs WHERE state = 'queued'
          UNION
          SELECT DISTINCT lane FROM :s.open_runs WHERE state = 'running') AS busy
      WHERE lane NOT IN (SELECT name FROM :s.lanes)) AS l
CROSS JOIN (SELECT :now AS mono) AS present
LEFT JOIN :s.locks k ON k.name = 'lane:' || l.name AND k.token IS NOT NULL
    AND :s.lasts(k.lease_until, k.lease_ttl, present.mono)

-- name: audit
SELECT coalesce(
    json_agg(json_build_array(at, actor, action, target, reason) ORDER BY id DESC), '[]')
FROM (SELECT * FROM :s.audit ORDER BY id DESC LIMIT $1) AS newest

-- name: notify
-- Nothing that has to be durable: the commit need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true) || pg_notify(:s.channel(), $1)::text

-- name: channel
SELECT :s.channel()

-- name: newest
-- The newest event and the newest entry of the audit.
SELECT last_value + is_called::integer || ' ' || coalesce((SELECT max(id) FROM :s.audit), 0)
FROM :s.positions

-- name: mark
-- Whether the store takes part in a move.
SELECT coalesce((SELECT value FROM :s.meta WHERE name = 'mark'), '')

-- name: forget_old_delays
-- A delay that ends later than it can was given by a clock that has since been
-- set back: it is over.
WITH freed AS (
    UPDATE :s.open_runs SET available = NULL, due = NULL
    WHERE state = 'queued' AND due > :now + delay
    RETURNING 1)
SELECT count(*) FROM freed

-- name: facts
SELECT :s.facts($2::jsonb, $1::double precision)

-- name: ended_leases
SELECT :s.ended_leases($2, :now)

-- name: expired
SELECT :s.expired($2, $3, $4, $5, :now)
