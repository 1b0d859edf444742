-- The reads. `-- rows:` begins a statement whose rows, a JSON value each, are returned as an array,
-- `-- value:` one that returns its only value. `:s.` stands for the store's schema, `:now` for the
-- present ($1, if a test says it), `:run` for a run of all_runs as an array in the order of
-- RunFacts, `:filter(q)` for what $1 to $7 ask of a table's rows: see `statements.py`. Reads are
-- planned for their values (`$1 IS NULL` disappears), so every filter finds its index.

-- rows: run
SELECT :run FROM :s.all_runs r WHERE id = $1

-- rows: over
SELECT :run FROM :s.all_runs r
WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)))
  AND state IN ('succeeded', 'failed', 'cancelled')

-- rows: unique_runs
SELECT :run FROM :s.open_runs o JOIN :s.all_runs r ON r.id = o.id
WHERE o.is_unique AND o.state IN ('queued', 'running', 'paused') ORDER BY r.seq

-- rows: runs
-- Ids begin with their time. A long prefix may name a few old runs, which nobody should look for
-- from the newest back: an order that no index has makes the server find them by id.
SELECT :run FROM :s.all_runs r
LEFT JOIN :s.open_runs o ON o.id = r.id LEFT JOIN :s.results s ON s.id = r.id
WHERE :filter(r) AND ($8::bigint IS NULL OR r.seq < $8)
  AND ($3::text IS NULL OR o.state = $3 OR $3 = 'succeeded' AND s.id IS NOT NULL)
ORDER BY CASE WHEN length($6) > 5 THEN r.seq + 0 ELSE r.seq END DESC LIMIT $9

-- rows: runs_by_state
-- The same for the states that have an index of their own.
SELECT :run FROM :open AS o JOIN :s.all_runs r ON r.id = o.id
WHERE :filter(o) AND o.state = $3 AND ($8::bigint IS NULL OR o.seq < $8)
ORDER BY o.seq DESC LIMIT $9

-- value: count
-- What has succeeded is what was asked and is not open: one count without a join.
WITH open AS MATERIALIZED (
    SELECT state, count(*) AS n FROM :open AS o WHERE :filter(o) GROUP BY state
), total AS (
    SELECT count(*) AS n FROM :s.requests q
    WHERE ($3::text IS NULL OR $3 = 'succeeded') AND :filter(q)
)
SELECT coalesce(json_object_agg(state, n), '{}') FROM (
    SELECT state, n FROM open WHERE $3::text IS NULL OR state = $3
    UNION ALL
    SELECT 'succeeded', n - coalesce((SELECT sum(n) FROM open), 0) FROM total
) AS counted WHERE n > 0

-- rows: checkpoints
SELECT to_json(c) FROM :s.all_checkpoints c
WHERE run = $1 AND ($2::text IS NULL OR step = $2) ORDER BY step, key

-- rows: quarantined
SELECT json_build_array(step, key, reason) FROM :s.quarantine WHERE run = $1 ORDER BY id

-- rows: history
SELECT json_build_array(e.run, e.seq, e.type, e.at, e.data, r.tenant, r.pipeline, e.position)
FROM :s.all_events e JOIN :s.requests r ON r.id = e.run WHERE e.run = $1 ORDER BY e.seq

-- value: records
-- $2 prefix, $3 behind which key, $4 limit.
SELECT json_build_object('now', :now, 'records', ARRAY(
    SELECT json_build_array(key, value, version, updated) FROM :s.records
    WHERE key >= $2 AND key < $2 || U&'\+10FFFF' AND key > $3
      AND (lease_until IS NULL OR :s.lasts(lease_until, lease_ttl, :now))
    ORDER BY key LIMIT $4))

-- rows: logs
SELECT json_build_array(at, level, step, message, fields) FROM :s.logs
WHERE run = $1 AND n > $2::bigint AND n <= $2::bigint + $3::bigint ORDER BY n

-- rows: dead_letters
SELECT :letter FROM :s.dead_letters d LEFT JOIN :s.requests q ON q.id = d.run
WHERE ($1::text IS NULL OR d.tenant = $1) AND ($2::boolean IS FALSE OR d.closed IS NULL)
  AND ($4::float8 IS NULL OR (d.created, d.id) < ($4, $5 COLLATE "C"))
ORDER BY d.created DESC, d.id DESC LIMIT $3

-- rows: dead_letter
SELECT :letter FROM :s.dead_letters d LEFT JOIN :s.requests q ON q.id = d.run WHERE d.id = $1

-- rows: locks
SELECT json_build_array(name, epoch, owner, acquired, lease_until - present.mono)
FROM :s.locks, (SELECT :now AS mono) AS present
WHERE token IS NOT NULL AND :s.lasts(lease_until, lease_ttl, present.mono) ORDER BY name

-- rows: lanes
SELECT json_build_array(
    l.name, l."order", l.head,
    (SELECT count(*) FROM :s.open_runs r WHERE r.lane = l.name AND r.state = 'queued'),
    (SELECT count(*) FROM :s.open_runs r WHERE r.lane = l.name AND r.state = 'running'),
    k.owner, coalesce(k.epoch, 0),
    (SELECT r.id FROM :s.open_runs r WHERE r.lane = l.name AND r.holds_lane
     ORDER BY r.seq LIMIT 1),
    (SELECT count(*) FROM :s.open_runs r
     WHERE r.lane = l.name AND r.state = 'queued' AND r.due > present.mono),
    (SELECT q.created FROM :s.open_runs r JOIN :s.requests q ON q.id = r.id
     WHERE r.lane = l.name AND r.state = 'queued' AND (r.due IS NULL OR r.due <= present.mono)
     ORDER BY r.seq LIMIT 1))
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
ORDER BY l.name

-- rows: audit
SELECT json_build_array(at, actor, action, target, reason)
FROM :s.audit ORDER BY id DESC LIMIT $1

-- value: notify
-- Nothing that has to be durable: the commit need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true) || pg_notify(:s.channel(), $1)::text

-- value: newest
-- The newest event and the newest entry of the audit.
SELECT last_value + is_called::integer || ' ' || coalesce((SELECT max(id) FROM :s.audit), 0)
FROM :s.positions

-- value: mark
-- Whether the store takes part in a move.
SELECT coalesce((SELECT value FROM :s.meta WHERE name = 'mark'), '')

-- value: forget_old_delays
-- A delay that ends later than it can was set by a clock that has since been set back: it is over.
WITH freed AS (
    UPDATE :s.open_runs SET available = NULL, due = NULL
    WHERE state = 'queued' AND due > :now + delay
    RETURNING 1)
SELECT count(*) FROM freed
