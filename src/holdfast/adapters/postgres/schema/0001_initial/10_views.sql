-- Reading, for people: beside `dead_letters`, `lanes`, `locks`, `logs` and `audit`. Nothing is
-- written here, and nothing of the program looks here.

-- Stored JSON: `data->>'error'` and so on. A NUL that a client wrote is shown as U+FFFD.
CREATE FUNCTION readable(stored text) RETURNS json
LANGUAGE sql STABLE AS $$ SELECT replace(stored, '\u0000', '\ufffd')::json $$;

CREATE VIEW runs AS
SELECT id, tenant, pipeline, lane, state, seq, priority, key, parent, epoch, attempts,
       attempt_limit, worker, to_timestamp(created) AS created,
       to_timestamp(available) AS available,
       to_timestamp(started) AS started, to_timestamp(finished) AS finished,
       to_timestamp(lease_until) AS lease_until, input, result, readable(error) AS error, reason,
       readable(progress) AS progress, readable(labels) AS labels,
       readable(attributes) AS attributes, is_unique, holds_lane
FROM all_runs;

CREATE VIEW steps AS
SELECT run, step, r->>'status' AS status,
       to_timestamp((r->>'started')::double precision) AS started,
       to_timestamp((r->>'finished')::double precision) AS finished,
       (r->>'duration')::double precision AS seconds,
       coalesce((r->>'attempts')::bigint, 1) AS attempts,
       (r->>'done')::bigint AS items, r->'usage' AS usage, epoch, value
FROM (SELECT run, step, epoch, value, readable(record) AS r FROM all_checkpoints WHERE key = '')
     AS completed;

CREATE VIEW history AS
SELECT e.run, e.seq, e.type, to_timestamp(e.at) AS at, readable(e.data) AS data, r.tenant,
       r.pipeline, e.position
FROM all_events e JOIN requests r ON r.id = e.run;

-- The tables of a job worker that this store may replace, under their names and with their words.
-- A job's id is the run's key, or the run's id where it has none.

-- A field of an input that is an object; NULL also for one that is in the blob store.
CREATE FUNCTION input_field(input text, field text) RETURNS text
LANGUAGE sql STABLE AS $$ SELECT CASE WHEN input LIKE '{%' THEN readable(input)->>field END $$;

CREATE VIEW jobs AS
SELECT coalesce(r.key, r.id) AS id,
       coalesce(r.labels->>'userId', r.labels->>'user_id', r.tenant) AS user_id,
       coalesce(input_field(r.input, 'content'), r.input) AS content,
       coalesce(input_field(r.input, 'preset'), r.pipeline) AS preset,
       CASE r.state WHEN 'queued' THEN 'pending' WHEN 'running' THEN 'processing'
                    WHEN 'paused' THEN 'processing' WHEN 'succeeded' THEN 'completed'
                    ELSE r.state END AS state,
       r.created AS created_at,
       (SELECT h.at FROM history h WHERE h.run = r.id ORDER BY h.seq DESC LIMIT 1) AS updated_at,
       r.started AS started_at, r.finished AS completed_at,
       json_build_object('run', r.id, 'lane', r.lane, 'priority', r.priority,
                         'attempts', r.attempts, 'parent', r.parent, 'reason', r.reason)
           AS job_metadata
FROM runs r;

CREATE VIEW job_states AS
SELECT position AS id, job_id, lag(state) OVER (PARTITION BY run ORDER BY seq) AS previous_state,
       state AS new_state, type AS reason, data AS state_metadata, at AS created_at
FROM (
    SELECT h.*, coalesce(r.key, r.id) AS job_id, CASE h.type
        WHEN 'run.started' THEN 'processing' WHEN 'run.paused' THEN 'processing'
        WHEN 'run.completed' THEN 'completed' WHEN 'run.failed' THEN 'failed'
        WHEN 'run.cancelled' THEN 'cancelled' ELSE 'pending' END AS state
    FROM history h JOIN requests r ON r.id = h.run WHERE h.type LIKE 'run.%') AS changes;

-- `processing_time_ms` is that of the last attempt, by the worker's monotonic clock; NULL if the
-- worker vanished.
CREATE VIEW job_results AS
SELECT coalesce(r.key, r.id) AS job_id,
       CASE WHEN r.state = 'succeeded' THEN 'success' WHEN r.error->>'name' = 'RunTimeout'
            THEN 'timeout' ELSE 'error' END AS status,
       r.result AS output, r.error->>'message' AS error_message,
       (SELECT (h.data->>'execution_time_ms')::bigint FROM history h
        WHERE h.run = r.id AND h.type IN ('run.completed', 'run.failed')
        ORDER BY h.seq DESC LIMIT 1) AS processing_time_ms
FROM runs r WHERE r.state IN ('succeeded', 'failed');
