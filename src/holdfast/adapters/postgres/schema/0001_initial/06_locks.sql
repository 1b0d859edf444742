-- Locks: an owner, a time, and an epoch that rises at every acquisition. lock_rows() has locked the
-- rows that a batch names.

-- Elements of `given`: 0 name, 1 token, 2 owner, 3 ttl; each lock once. Answers each in its place:
-- [epoch], or [owner, seconds left, epoch] of who holds it.
CREATE FUNCTION acquire(given jsonb, wall double precision, mono double precision) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    answer text;
    is_complete boolean;
BEGIN
    WITH request AS MATERIALIZED (
        SELECT n, c->>0 AS name, c->>1 AS token, c->>2 AS owner, (c->>3)::double precision AS ttl
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
    ), taken AS (
        INSERT INTO locks AS k (name, epoch, token, owner, acquired, lease_until, lease_ttl)
        SELECT name, 1, token, owner, wall, mono + ttl, ttl FROM request ORDER BY name COLLATE "C"
        ON CONFLICT (name) DO UPDATE
        SET epoch = k.epoch + 1, token = excluded.token, owner = excluded.owner, acquired = wall,
            lease_until = excluded.lease_until, lease_ttl = excluded.lease_ttl
        WHERE k.token IS NULL OR NOT lasts(k.lease_until, k.lease_ttl, mono)
        RETURNING name, epoch
    ), kept AS (
        UPDATE locks k SET lease_until = greatest(k.lease_until, mono + a.ttl),
                           lease_ttl = greatest(k.lease_ttl, a.ttl)
        FROM request a
        WHERE k.name = a.name AND k.token = a.token AND lasts(k.lease_until, k.lease_ttl, mono)
        RETURNING k.name, k.epoch
    ), answered AS (
        SELECT a.n, coalesce(
            (SELECT json_build_array(t.epoch) FROM taken t WHERE t.name = a.name),
            (SELECT json_build_array(o.epoch) FROM kept o WHERE o.name = a.name),
            (SELECT json_build_array(k.owner, k.lease_until - mono, k.epoch)
             FROM locks k WHERE k.name = a.name)) AS reply
        FROM request a
    )
    SELECT json_agg(reply ORDER BY n), bool_and(reply IS NOT NULL) INTO answer, is_complete
    FROM answered;
    IF NOT is_complete THEN  -- somebody has just made a lock that is not to be seen here yet
        RAISE serialization_failure;
    END IF;
    RETURN answer;
END $$;

-- Elements of `given`: 0 name, 1 token. Answers the places of the lost ones.
CREATE FUNCTION renew_locks(given jsonb, ttl double precision, mono double precision) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    accepted bigint[];
BEGIN
    WITH kept AS MATERIALIZED (
        SELECT n, k.name FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
        JOIN locks k ON k.name = c->>0 AND k.token = c->>1
                    AND lasts(k.lease_until, k.lease_ttl, mono)
    ), extended AS (
        UPDATE locks k SET lease_until = greatest(k.lease_until, mono + ttl),
                           lease_ttl = greatest(k.lease_ttl, ttl)
        FROM (SELECT DISTINCT name FROM kept) AS d WHERE k.name = d.name
    )
    SELECT array_agg(n) INTO accepted FROM kept;
    RETURN refused(given, accepted);
END $$;

-- Elements of `given`: 0 name, 1 token; each lock once. Answers the places of those that were not
-- held any more. nextval: those who listen by polling notice that a position was taken.
CREATE FUNCTION release(given jsonb, mono double precision) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    freed bigint[];
BEGIN
    WITH ended AS (
        UPDATE locks k SET token = NULL, owner = '', acquired = NULL, lease_until = NULL
        FROM jsonb_array_elements(given) WITH ORDINALITY AS g (c, n)
        WHERE k.name = c->>0 AND k.token = c->>1 AND lasts(k.lease_until, k.lease_ttl, mono)
        RETURNING n
    )
    SELECT array_agg(n) INTO freed FROM ended;
    IF freed IS NOT NULL THEN
        PERFORM nextval('positions');
    END IF;
    RETURN refused(given, freed);
END $$;
