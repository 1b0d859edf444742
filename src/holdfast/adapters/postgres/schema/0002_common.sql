-- What the functions of the other files share. Argument names are the same everywhere:
--   given   what the client sent, as jsonb
--   wall    the present, for people
--   mono    the present, for leases and delays (the same moment, but for tests that move one of the two)
-- What is called in an assignment (`x := f(…)`) is called without the machinery of a statement, which a batch of one
-- command would feel.

-- Seconds as an interval. Longer than a century is a century: nothing a client sends may end in an overflow.
CREATE FUNCTION span(seconds double precision) RETURNS interval
LANGUAGE sql IMMUTABLE AS $$ SELECT make_interval(secs => greatest(0, least(seconds, 3.2e9))) $$;

-- Text as JSON, with the stand-in for U+0000 spelt as JSON spells it. (STABLE as to_json is: or it would not be inlined.)
CREATE FUNCTION quoted(given text) RETURNS text
LANGUAGE sql STABLE AS $$ SELECT coalesce(replace(to_json(given)::text, U&'\FFFF' || '0', '\u0000'), 'null') $$;

-- A moment as seconds since 1970.
CREATE FUNCTION seconds(moment timestamptz) RETURNS double precision
LANGUAGE sql STABLE AS $$ SELECT extract(epoch FROM moment)::double precision $$;

-- Before a transaction takes a position of the outbox, it shows the world that lower ones may still be on their way.
--
-- Positions are handed out before they are committed, so a reader could see 8, confirm it, and never see 7. Each
-- writer therefore holds, until it has committed, a shared advisory lock whose number is a position below all that it
-- takes; nobody ever waits for it. The reader (read_outbox) looks at these locks and stays below the lowest.
CREATE FUNCTION reserve_positions() RETURNS boolean
LANGUAGE sql AS $$
    SELECT pg_try_advisory_xact_lock_shared('events'::regclass::oid::integer, (nextval('positions') & 2147483647)::integer)
$$;

-- Write the next event of a run whose row is locked.
CREATE FUNCTION append_event(of_run text, kind text, wall timestamptz, content text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    reserved boolean := reserve_positions();
    number bigint := next_event(of_run);
BEGIN
    INSERT INTO events (run, seq, type, at, data) VALUES (of_run, number, kind, wall, content);
END $$;

-- The number of the next event of a run whose row is locked; it is taken now.
CREATE FUNCTION next_event(of_run text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    UPDATE open_runs SET events = events + 1 WHERE id = of_run RETURNING events INTO number;
    RETURN number;
END $$;

CREATE FUNCTION write_audit(wall timestamptz, by_actor text, what text, which text, why text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (at, actor, action, target, reason) VALUES (wall, by_actor, what, which, why);
END $$;

-- The places (0, 1, …) among `total` that are not among `accepted`: what a group of fenced commands answers when some
-- are stale.
CREATE FUNCTION places_without(total integer, accepted bigint[]) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_agg(place - 1), '[]') FROM generate_series(1, total) AS place
            WHERE accepted IS NULL OR place <> ALL (accepted));
END $$;
