-- What the functions of the other files share. Argument names are the same everywhere:
--   commands  as the client sends them: a JSON array, most of arrays of their fields
--   wall      the present, for people
--   mono      the present, for leases and delays (another clock only in tests that move one)
--   accepted  the answer: the numbers (1, 2, …) of the commands that took effect
-- What is called in an assignment (`x := f(…)`) is called without the machinery of a statement.

-- Whether a lease has not ended. One that ends later than it can was granted by a clock that has
-- since been set back.
CREATE FUNCTION lasts(until double precision, ttl double precision, mono double precision)
RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(until > mono AND until <= mono + ttl, false) $$;

-- The commands whose run is held by the epoch that they carry: the fence, for all of them. Every
-- command begins with its run and epoch. lock_rows() has locked the rows, so what is found here
-- stays as it is until the end of the transaction.
--
-- Plans are made once per session, perhaps on an empty table, and must still be right when it has a
-- million rows. So the order of work is fixed: for each command a LATERAL lookup by id (OFFSET 0
-- keeps it one), then an UPDATE by ctid. coalesce() hides the state from the planner, which would
-- otherwise look through all running runs for each command.
CREATE FUNCTION held(commands jsonb, mono double precision)
RETURNS TABLE (n bigint, c jsonb, tid tid, run open_runs)
LANGUAGE sql STABLE AS $$
    SELECT g.n, g.c, r.tid, r.run
    FROM jsonb_array_elements(commands) WITH ORDINALITY AS g (c, n), LATERAL (
        SELECT o.ctid AS tid, o AS run FROM open_runs o
        WHERE o.id = g.c->>0 AND o.epoch = (g.c->>1)::bigint AND coalesce(o.state) = 'running'
          AND lasts(o.lease_until, o.lease_ttl, mono) OFFSET 0) AS r
$$;

-- Before a transaction takes a position of the outbox, it shows that lower ones may be on their
-- way.
--
-- Positions are handed out before they are committed, so a reader could see 8 and never see 7. Each
-- writer therefore holds, until it has committed, a shared advisory lock whose number is a position
-- below all that it takes; nobody ever waits for it. The reader (next_events) looks at these locks
-- and stays below the lowest.
CREATE FUNCTION reserve_positions() RETURNS boolean
LANGUAGE sql AS $$
    SELECT pg_try_advisory_xact_lock_shared(
        'events'::regclass::oid::integer, (nextval('positions') & 2147483647)::integer)
$$;
