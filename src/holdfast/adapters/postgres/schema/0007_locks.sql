-- Locks: an owner, a time, and an epoch that rises at every acquisition. lock_rows() has locked the rows that a batch
-- names, and created those that were missing, with epoch 0 and free.

-- Elements of `given` are Acquires; each lock once. Answers each in its place: [epoch], or [owner, seconds left, epoch] of
-- who holds it.
CREATE FUNCTION acquire(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    WITH found AS MATERIALIZED (
        SELECT n, c->>'token' AS token, c->>'owner' AS owner, span((c->>'ttl')::double precision) AS ttl,
               k.tid, k.epoch, k.holder, k.lease_until, k.is_held, k.is_held AND k.of_token = c->>'token' AS is_own
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n), LATERAL (
            SELECT k.ctid AS tid, k.epoch, k.token AS of_token, k.owner AS holder, k.lease_until,
                   (k.token IS NOT NULL AND k.lease_until > mono AND k.lease_until <= mono + k.lease_ttl) IS TRUE AS is_held
            FROM locks k WHERE k.name = c->>'name' OFFSET 0) AS k
    ), taken AS (
        UPDATE locks k SET epoch = k.epoch + 1, token = f.token, owner = f.owner, acquired = wall,
                           lease_until = mono + f.ttl, lease_ttl = f.ttl
        FROM found f WHERE k.ctid = f.tid AND NOT f.is_held
    ), kept AS (
        UPDATE locks k SET lease_until = greatest(k.lease_until, mono + f.ttl), lease_ttl = greatest(k.lease_ttl, f.ttl)
        FROM found f WHERE k.ctid = f.tid AND f.is_own
    )
    SELECT json_agg(CASE WHEN NOT is_held THEN json_build_array(epoch + 1) WHEN is_own THEN json_build_array(epoch)
                         ELSE json_build_array(holder, seconds(lease_until) - seconds(mono), epoch) END ORDER BY n)
    INTO answer FROM found;
    RETURN answer;
END $$;

-- Elements of `given`: [name, token]. Answers the places of the lost ones.
CREATE FUNCTION renew_locks(given jsonb, ttl double precision, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    accepted bigint[];
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT n, c->>0 AS name, c->>1 AS token FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
    ), kept AS MATERIALIZED (
        SELECT a.n, fence.tid FROM asked a, LATERAL (
            SELECT k.ctid AS tid FROM locks k WHERE k.name = a.name AND k.token = a.token
               AND k.lease_until > mono AND k.lease_until <= mono + k.lease_ttl OFFSET 0) AS fence
    ), extended AS (
        UPDATE locks k SET lease_until = greatest(k.lease_until, mono + span(ttl)),
                           lease_ttl = greatest(k.lease_ttl, span(ttl))
        FROM (SELECT DISTINCT tid FROM kept) AS d WHERE k.ctid = d.tid
    )
    SELECT array_agg(n) INTO accepted FROM kept;
    IF cardinality(accepted) = jsonb_array_length(given) THEN
        RETURN '[]';
    END IF;
    RETURN places_without(jsonb_array_length(given), accepted);
END $$;

-- Elements of `given` are ReleaseLocks; each lock once. Answers the places of those that were still held.
-- nextval: those who listen by polling notice that a position was taken.
CREATE FUNCTION release(given jsonb, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    freed jsonb;
BEGIN
    WITH held AS MATERIALIZED (
        SELECT n, k.tid FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n), LATERAL (
            SELECT k.ctid AS tid FROM locks k WHERE k.name = c->>'name' AND k.token = c->>'token'
               AND k.lease_until > mono AND k.lease_until <= mono + k.lease_ttl OFFSET 0) AS k
    ), ended AS (
        UPDATE locks k SET token = NULL, owner = NULL, acquired = NULL, lease_until = NULL FROM held h WHERE k.ctid = h.tid
    )
    SELECT jsonb_agg(n - 1) INTO freed FROM held;
    IF freed IS NULL THEN
        RETURN '[]';
    END IF;
    PERFORM nextval('positions');
    RETURN freed;
END $$;

CREATE FUNCTION force_release(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE locks SET token = NULL, owner = NULL, acquired = NULL, lease_until = NULL, epoch = epoch + 1
    WHERE name = given->>'name' AND token IS NOT NULL AND lease_until > mono AND lease_until <= mono + lease_ttl;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM nextval('positions');
    PERFORM write_audit(wall, given->>'actor', 'lock.force_release', given->>'name', given->>'reason');
    RETURN true;
END $$;
