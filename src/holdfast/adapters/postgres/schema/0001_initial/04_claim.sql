-- Lease up to `limit` runs of a lane, as `Claim` says. Answers the claimed runs, as arrays in the
-- order of `Claimed`.
--
-- Most claims of an idle system find nothing. They write nothing, too, so that their commit costs
-- nothing. Runs that somebody else has locked are passed over.
CREATE FUNCTION claim(request jsonb, wall double precision, mono double precision,
                      OUT claimed json)
LANGUAGE plpgsql AS $$
DECLARE
    is_due boolean;
    is_fifo boolean;
    reserved boolean;
    targets tid[];
    by_worker text := request->>'worker';
    worker_as_json text := to_json(by_worker);
    ttl double precision := (request->>'ttl')::double precision;
BEGIN
    SELECT EXISTS (SELECT FROM open_runs WHERE state = 'queued' AND due <= mono),
           EXISTS (SELECT FROM lanes WHERE name = request->>'lane' AND "order" = 'fifo')
    INTO is_due, is_fifo;
    IF is_due THEN  -- from now on these are found by the index of those that are ready
        UPDATE open_runs SET due = NULL, available = NULL WHERE id IN (
            SELECT id FROM open_runs WHERE state = 'queued' AND due <= mono ORDER BY due LIMIT 1000
            FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    IF is_fifo THEN
        SELECT array_agg(tid) INTO targets FROM fifo_head(request, mono);
    ELSE
        SELECT array_agg(tid) INTO targets FROM (
            SELECT tid, row_number() OVER so_far AS n, sum(size) OVER so_far AS total
            FROM take_turns(request) WINDOW so_far AS (ROWS UNBOUNDED PRECEDING)) AS counted
        WHERE n = 1 OR total <= (request->>'max_bytes')::numeric;
    END IF;
    IF targets IS NULL THEN
        RETURN;
    END IF;
    reserved := reserve_positions();
    WITH leased AS (
        UPDATE open_runs r
        SET state = 'running', epoch = r.epoch + 1, attempts = r.attempts + 1, worker = by_worker,
            lease_until = mono + ttl, lease_ttl = ttl, started = coalesce(r.started, wall),
            reason = NULL, events = r.events + 1
        FROM unnest(targets) WITH ORDINALITY AS c (tid, n) WHERE r.ctid = c.tid
        RETURNING c.n, r.id, r.tenant, r.pipeline, r.lane, r.epoch, r.attempts, r.attempt_limit,
                  r.progress, r.events
    ), event AS (
        INSERT INTO events (run, seq, type, at, data)
        SELECT id, events, 'run.started', wall, '{"attempt":' || attempts || ',"worker":'
               || worker_as_json || ',"epoch":' || epoch || '}'
        FROM leased ORDER BY n
    )
    SELECT json_agg(json_build_array(
        id, tenant, pipeline, lane, epoch, attempts, attempt_limit, input, progress,
        epoch > 1 OR inherits, fingerprint) ORDER BY n)
    INTO claimed
    FROM leased l, LATERAL (
        SELECT q.input, q.inherits, q.fingerprint FROM requests q
        WHERE q.id = l.id OFFSET 0) AS request;
END $$;

-- The runs of a parallel lane that are to be claimed, locked, in their order: tenants in turn,
-- those with the fewest running runs of the lane first.
CREATE FUNCTION take_turns(request jsonb) RETURNS TABLE (tid tid, size bigint)
LANGUAGE plpgsql AS $$
DECLARE
    most bigint := (request->>'limit')::bigint;
    turns text[] := waiting_tenants(request);
BEGIN
    IF cardinality(turns) = 1 AND NOT EXISTS (SELECT FROM tenants) THEN  -- nobody to share with
        RETURN QUERY SELECT * FROM first_runs(request, turns[1], most);
    ELSIF cardinality(turns) > 0 THEN
        RETURN QUERY
        WITH tenant AS MATERIALIZED (
            SELECT t.name, t.turn,
                   CASE WHEN (SELECT true FROM tenants l WHERE l.tenant = t.name)
                        THEN free_slots(t.name) END AS slots,
                   (SELECT count(*) FROM open_runs o
                    WHERE o.tenant = t.name AND o.lane = request->>'lane' AND o.state = 'running'
                   ) AS running
            FROM unnest(turns) WITH ORDINALITY AS t (name, turn)
        ), served AS MATERIALIZED (  -- a claim serves no more tenants than it takes runs
            SELECT * FROM tenant t WHERE coalesce(t.slots, 1) > 0
            ORDER BY t.running, t.turn LIMIT most
        )
        SELECT first.tid, first.size FROM served s, LATERAL (
            SELECT f.*, row_number() OVER () AS round
            FROM first_runs(request, s.name, least(most, s.slots)) AS f) AS first
        ORDER BY first.round, s.running, s.turn LIMIT most;
    END IF;
END $$;

-- The tenants that have runs to be claimed, each found by one look into the index: in the order of
-- their names, behind the one that was served last, and on with the first.
CREATE FUNCTION waiting_tenants(request jsonb) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    last_served text := request->>'after';
    next_tenant text := last_served;
    turns text[] := '{}';
    is_behind boolean := true;
BEGIN
    WHILE cardinality(turns) < (request->>'examined')::bigint LOOP
        SELECT o.tenant INTO next_tenant FROM open_runs o
        WHERE o.lane = request->>'lane' AND o.state = 'queued' AND o.due IS NULL
          AND o.tenant > next_tenant AND request->'pipelines' ? o.pipeline
        ORDER BY o.tenant LIMIT 1;
        IF is_behind AND next_tenant IS NULL AND last_served > '' THEN
            is_behind := false;
            next_tenant := '';
        ELSIF next_tenant IS NULL OR NOT is_behind AND next_tenant > last_served THEN
            EXIT;
        ELSE
            turns := turns || next_tenant;
        END IF;
    END LOOP;
    RETURN turns;
END $$;

-- The first runs of a tenant, locked: by priority, then in the order of acceptance.
CREATE FUNCTION first_runs(request jsonb, of_tenant text, most bigint)
RETURNS TABLE (tid tid, size bigint)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT o.ctid, o.size FROM open_runs o
    WHERE o.lane = request->>'lane' AND o.tenant = of_tenant AND o.state = 'queued'
      AND o.due IS NULL AND request->'pipelines' ? o.pipeline
    ORDER BY o.priority DESC, o.seq LIMIT most
    FOR NO KEY UPDATE SKIP LOCKED;
END $$;

-- How many more runs of a tenant may run; NULL for as many as there are. Claims for a tenant with a
-- limit follow one another: while somebody else is at it, there are none.
CREATE FUNCTION free_slots(of_tenant text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    most bigint := (SELECT running FROM tenants WHERE tenant = of_tenant);
BEGIN
    IF most IS NULL THEN
        RETURN NULL;
    END IF;
    IF NOT pg_try_advisory_xact_lock('tenants'::regclass::oid::integer, hashtext(of_tenant)) THEN
        RETURN 0;
    END IF;
    RETURN greatest(0, most - (SELECT count(*) FROM open_runs o
                               WHERE o.tenant = of_tenant AND o.state = 'running'));
END $$;

-- The only run that the leader of a fifo lane may claim now, if there is one. The name of the
-- lane's lock is locked, so terms and claims of the lane follow one another.
CREATE FUNCTION fifo_head(request jsonb, mono double precision) RETURNS TABLE (tid tid, size bigint)
LANGUAGE plpgsql AS $$
DECLARE
    of_lane text := request->>'lane';
BEGIN
    RETURN QUERY SELECT o.ctid, o.size FROM open_runs o
    WHERE EXISTS (
        SELECT FROM locks WHERE name = 'lane:' || of_lane AND token = request->>'token'
        AND epoch = (request->>'term')::bigint AND lasts(lease_until, lease_ttl, mono))
      AND NOT EXISTS (SELECT FROM open_runs b WHERE b.lane = of_lane AND b.state = 'running')
      AND NOT EXISTS (SELECT FROM open_runs b WHERE b.lane = of_lane AND b.holds_lane)
      AND o.id = (
        SELECT h.id FROM open_runs h WHERE h.lane = of_lane AND h.state = 'queued'
        ORDER BY h.seq LIMIT 1)
      AND o.state = 'queued' AND o.due IS NULL AND request->'pipelines' ? o.pipeline
      AND coalesce(free_slots(o.tenant), 1) > 0
    LIMIT (request->>'limit')::bigint FOR NO KEY UPDATE SKIP LOCKED;
END $$;
