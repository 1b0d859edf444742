-- Reading. First what the client's own queries (queries.sql) use, then the views for people: beside
-- `dead_letters`, `lanes`, `locks`, `logs` and `audit`. Nothing is written here.

CREATE VIEW runs AS
SELECT q.id, q.tenant, q.pipeline, q.lane, coalesce(o.state, 'succeeded') AS state, q.seq, q.priority, q.key,
       q.fingerprint, q.parent, coalesce(o.epoch, s.epoch) AS epoch, coalesce(o.attempts, s.attempts) AS attempts,
       coalesce(o.attempt_limit, s.attempt_limit) AS attempt_limit, coalesce(o.worker, s.worker) AS worker, q.created,
       o.available, coalesce(o.started, s.started) AS started, coalesce(o.finished, s.finished) AS finished,
       q.input, s.result, o.error, o.reason, coalesce(o.progress, s.progress) AS progress, q.is_unique, o.lease_until,
       o.holds_lane
FROM requests q LEFT JOIN open_runs o ON o.id = q.id LEFT JOIN results s ON s.id = q.id;

CREATE FUNCTION run_document(r runs) RETURNS json
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT json_build_object(
        'id', r.id, 'tenant', r.tenant, 'pipeline', r.pipeline, 'lane', r.lane, 'state', r.state, 'seq', r.seq,
        'priority', r.priority, 'key', r.key, 'fingerprint', r.fingerprint, 'parent', r.parent, 'epoch', r.epoch,
        'attempts', r.attempts, 'attempt_limit', r.attempt_limit, 'worker', r.worker, 'created', seconds(r.created),
        'available', seconds(r.available), 'started', seconds(r.started), 'finished', seconds(r.finished),
        'input', r.input, 'result', r.result, 'error', r.error::json, 'reason', r.reason, 'progress', r.progress::json)
$$;

CREATE FUNCTION letter_document(d dead_letters) RETURNS json
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT json_build_object(
        'id', d.id, 'source', d.source, 'reason', d.reason, 'body', translate(encode(d.body, 'base64'), E'\n', ''),
        'attributes', d.attributes::json, 'tenant', d.tenant, 'created', seconds(d.created), 'run', d.run,
        'closed', seconds(d.closed), 'resolution', d.resolution)
$$;

-- Stored JSON for reading: `data->>'error'` and so on. A NUL that a client wrote is shown as U+FFFD.
CREATE FUNCTION readable(given text) RETURNS json
LANGUAGE sql STABLE AS $$ SELECT replace(given, '\u0000', '\ufffd')::json $$;

CREATE VIEW steps AS
SELECT run, step, r->>'status' AS status, to_timestamp((r->>'started')::double precision) AS started,
       to_timestamp((r->>'finished')::double precision) AS finished, (r->>'duration')::double precision AS seconds,
       coalesce((r->>'attempts')::bigint, 1) AS attempts, (r->>'done')::bigint AS items, r->'usage' AS usage, epoch, value
FROM (SELECT run, step, epoch, value, readable(record) AS r FROM all_checkpoints WHERE key = '') AS completed;

CREATE VIEW history AS
SELECT e.run, e.seq, e.type, e.at, readable(e.data) AS data, r.tenant, r.pipeline, e.position
FROM all_events e JOIN requests r ON r.id = e.run;

-- The tables of the job worker that this store may replace, under their names and with their words.

CREATE FUNCTION job_state(state text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE state WHEN 'queued' THEN 'pending' WHEN 'running' THEN 'processing' WHEN 'paused' THEN 'processing'
                      WHEN 'succeeded' THEN 'completed' ELSE state END
$$;

CREATE VIEW jobs AS
SELECT r.id, r.tenant AS user_id, r.input AS content, r.pipeline AS preset, job_state(r.state) AS state,
       r.created AS created_at,
       (SELECT e.at FROM all_events e WHERE e.run = r.id ORDER BY e.seq DESC LIMIT 1) AS updated_at,
       r.started AS started_at, r.finished AS completed_at,
       json_build_object('lane', r.lane, 'priority', r.priority, 'attempts', r.attempts, 'key', r.key,
                         'parent', r.parent, 'reason', r.reason) AS job_metadata
FROM runs r;

CREATE VIEW job_states AS
SELECT position AS id, run AS job_id, lag(state) OVER (PARTITION BY run ORDER BY seq) AS previous_state,
       state AS new_state, type AS reason, readable(data) AS state_metadata, at AS created_at
FROM (
    SELECT e.*, CASE e.type
        WHEN 'run.started' THEN 'processing' WHEN 'run.paused' THEN 'processing' WHEN 'run.completed' THEN 'completed'
        WHEN 'run.failed' THEN 'failed' WHEN 'run.cancelled' THEN 'cancelled' ELSE 'pending' END AS state
    FROM all_events e WHERE e.type LIKE 'run.%') AS changes;

CREATE VIEW job_results AS
SELECT id AS job_id,
       CASE WHEN state = 'succeeded' THEN 'success' WHEN readable(error)->>'name' = 'RunTimeout' THEN 'timeout'
            ELSE 'error' END AS status,
       result AS output, readable(error)->>'message' AS error_message,
       (extract(epoch FROM finished - started) * 1000)::bigint AS processing_time_ms
FROM runs WHERE state IN ('succeeded', 'failed');
