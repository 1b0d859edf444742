"""Sessions of browsers on every store: they read, and end with their key."""

from __future__ import annotations

import pytest

from holdfast.errors import Forbidden
from holdfast.services.authentication import Caller, Rejected
from holdfast.services.page_sessions import LIFETIME, SESSIONS


async def opened(app, *scopes, tenant="default", **options):
    """A key and a session of it."""
    issued = await app.keys.create(tenant, list(scopes or ["read"]), actor="ann", **options)
    return issued, await app.page_sessions.open(issued.text)


async def looks(app, session):
    return isinstance(await app.page_sessions.caller(session), Caller)


def test_a_session_may_read_for_the_tenant_of_its_key_and_nothing_else(run_story):
    async def story(app):
        await app.tenants.create("acme", actor="ann")
        issued, session = await opened(app, "submit", "read", "operate", tenant="acme")
        caller = await app.page_sessions.caller(session)
        assert (caller.tenant, caller.key) == ("acme", issued.key.id)
        assert [scope for scope in ("read", "submit", "operate", "admin") if caller.may(scope)] == [
            "read"
        ]
        _, of_admin = await opened(app, "admin")
        assert not (await app.page_sessions.caller(of_admin)).may("admin")

    run_story(story)


def test_a_session_ends_in_every_process_within_five_seconds_of_its_key(run_story, clock):
    async def story(app):
        async with app.another() as other:
            issued, session = await opened(app)
            assert await looks(app, session)
            assert await looks(other, session)
            await app.keys.revoke(issued.key.id, actor="ann")
            assert not await looks(app, session)
            clock.advance(5.0)
            reason = await other.page_sessions.caller(session)
            assert reason == Rejected("revoked", issued.key.id)

    run_story(story)


def test_a_session_ends_with_its_tenant_and_with_the_lifetime_of_its_key(run_story, clock):
    async def story(app):
        await app.tenants.create("acme", actor="ann")
        _, session = await opened(app, tenant="acme")
        await app.tenants.set("acme", actor="ann", enabled=False)
        clock.advance(5.0)
        assert not await looks(app, session)
        _, short = await opened(app, lifetime=60)
        assert await looks(app, short)
        clock.advance(60)
        assert not await looks(app, short)

    run_story(story)


def test_a_session_ends_after_some_hours_and_when_it_is_closed(run_story, clock):
    async def story(app):
        async with app.another() as other:
            _, session = await opened(app)
            clock.advance(LIFETIME - 10)
            assert await looks(app, session)
            clock.advance(15)
            assert not await looks(app, session)
            _, session = await opened(app)
            assert await looks(other, session)
            await app.page_sessions.close(session)
            await app.page_sessions.close(session)
            assert not await looks(app, session)
            clock.advance(5.0)
            assert not await looks(other, session)
            assert (await app.runtime.records.list(SESSIONS)).records == []

    run_story(story)


def test_nobody_closes_the_session_of_another(run_story):
    async def story(app):
        issued, session = await opened(app)
        _, of_another = await opened(app)
        secret = of_another.partition(".")[2]
        await app.page_sessions.close(f"{issued.key.id}.{secret}")
        await app.page_sessions.close(session[:-1])
        assert await looks(app, session)
        assert await looks(app, of_another)

    run_story(story)


def test_a_key_that_may_not_read_has_no_session(run_story):
    async def story(app):
        with pytest.raises(Forbidden, match="scope read"):
            await opened(app, "submit")
        assert await app.page_sessions.open("secret") == Rejected("malformed")

    run_story(story)
