-- Locks: an owner, a time, and an epoch that rises at every acquisition. lock_rows() has locked the rows that a batch
-- names, and created those that were missing, with epoch 0 and free.

-- Answers [epoch], or [owner, seconds left, epoch] of who holds it.
CREATE FUNCTION acquire(given jsonb, wall timestamptz, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    ttl interval := span((given->>'ttl')::double precision);
    k locks;
    is_held boolean;
BEGIN
    SELECT * INTO k FROM locks WHERE name = given->>'name';
    is_held := (k.token IS NOT NULL AND k.lease_until > mono AND k.lease_until <= mono + k.lease_ttl) IS TRUE;
    IF is_held AND k.token <> given->>'token' THEN
        RETURN json_build_array(k.owner, seconds(k.lease_until) - seconds(mono), k.epoch);
    ELSIF is_held THEN
        UPDATE locks SET lease_until = greatest(lease_until, mono + ttl), lease_ttl = greatest(lease_ttl, ttl)
        WHERE name = k.name;
    ELSE
        UPDATE locks SET epoch = epoch + 1, token = given->>'token', owner = given->>'owner', acquired = wall,
                         lease_until = mono + ttl, lease_ttl = ttl
        WHERE name = k.name RETURNING * INTO k;
    END IF;
    RETURN json_build_array(k.epoch);
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

-- nextval: those who listen by polling notice that a position was taken.
CREATE FUNCTION release_lock(given jsonb, mono timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE locks SET token = NULL, owner = NULL, acquired = NULL, lease_until = NULL
    WHERE name = given->>'name' AND token = given->>'token' AND lease_until > mono AND lease_until <= mono + lease_ttl;
    IF FOUND THEN
        PERFORM nextval('positions');
    END IF;
    RETURN FOUND;
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
