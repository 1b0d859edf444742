"""API keys on every store: made, shown once, rotated, revoked, refused."""

import pytest

from holdfast.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from holdfast.model.api_key import key_id, make_key
from holdfast.model.secrecy import masked
from holdfast.services.api_keys import KEPT, KEYS, decode_key
from holdfast.services.audit import entries
from holdfast.services.authentication import Caller, Rejected

DAY = 86_400.0


async def accepted(app, text):
    return isinstance(await app.authenticator.authenticate(text), Caller)


def test_a_key_says_whose_it_is_and_what_it_may_do(run_story):
    async def story(app):
        await app.tenants.create("acme", actor="ann")
        issued = await app.keys.create("acme", ["read", "submit"], actor="ann", name="ci")
        caller = await app.authenticator.authenticate(issued.text)
        assert caller == Caller("acme", frozenset({"submit", "read"}), issued.key.id)
        assert caller.actor == f"key {issued.key.id} of acme"
        assert [caller.may(scope) for scope in ("submit", "read", "operate", "admin")] == [
            True,
            True,
            False,
            False,
        ]
        [key] = await app.keys.list("acme")
        assert (key.name, key.state, key.created_by) == ("ci", "active", "ann")
        assert issued.text.startswith(key.prefix)

    run_story(story)


def test_only_a_digest_is_stored_and_logs_mask_the_key(run_story):
    async def story(app):
        issued = await app.keys.create("default", ["read"], actor="ann")
        everything = [*(await app.store.records("", limit=1000)).records]
        assert issued.text not in str(everything)
        secret = issued.text.rpartition("_")[2]
        assert secret not in str(everything)
        assert len(set(secret)) > 5
        assert secret not in masked(f"refused {issued.text} of somebody")

    run_story(story)


def test_the_first_key_is_made_once(run_story):
    async def story(app):
        assert not await app.keys.exist()
        issued = await app.keys.create_first(actor="ann")
        caller = await app.authenticator.authenticate(issued.text)
        assert caller.tenant == "default"
        assert all(caller.may(scope) for scope in ("submit", "read", "operate", "admin"))
        with pytest.raises(Conflict, match="there are keys, or were"):
            await app.keys.create_first(actor="bob")
        assert len(await app.keys.list()) == 1

    run_story(story)


def test_there_were_keys_also_when_the_last_one_is_forgotten(run_story, clock):
    """Or a service would let in everybody on its machine one day."""

    async def story(app):
        await app.keys.create("default", ["admin"], actor="ann", lifetime=DAY)
        clock.advance(DAY + KEPT + 1)
        assert await app.keys.list() == []
        assert await app.keys.exist()
        with pytest.raises(Conflict, match="there are keys, or were"):
            await app.keys.create_first(actor="bob")
        again = await app.keys.create("default", ["admin"], actor="ann")
        assert await accepted(app, again.text)

    run_story(story)


def test_a_revoked_key_is_refused_everywhere_within_five_seconds(run_story, clock):
    async def story(app):
        async with app.another() as other:
            issued = await app.keys.create("default", ["read"], actor="ann")
            assert await accepted(app, issued.text)
            assert await accepted(other, issued.text)
            clock.advance(1.9)
            view = await app.keys.revoke(issued.key.id, actor="ann", reason="leaked")
            assert view.state == "revoked"
            assert not await accepted(app, issued.text)
            clock.advance(5.0)
            assert await other.authenticator.authenticate(issued.text) == Rejected(
                "revoked", issued.key.id
            )

    run_story(story)


def test_a_rotated_key_works_beside_its_successor_for_a_while(run_story, clock):
    async def story(app):
        old = await app.keys.create("default", ["read"], actor="ann", lifetime=30 * DAY)
        new = await app.keys.rotate(old.key.id, actor="bob", overlap=3600)
        assert (await app.keys.get(old.key.id)).replaced_by == new.key.id
        assert (new.key.scopes, new.key.tenant) == (["read"], "default")
        assert (new.key.expires - new.key.created).days == 30
        with pytest.raises(Conflict, match="was rotated"):
            await app.keys.rotate(old.key.id, actor="bob")
        clock.advance(3599)
        assert await accepted(app, old.text)
        assert await accepted(app, new.text)
        clock.advance(1)
        assert not await accepted(app, old.text)
        assert await accepted(app, new.text)

    run_story(story)


def test_the_last_use_is_noted(run_story, clock):
    async def story(app):
        issued = await app.keys.create("default", ["read"], actor="ann")
        assert (await app.keys.get(issued.key.id)).last_used is None
        clock.advance(100)
        await app.authenticator.authenticate(issued.text)
        assert (await app.keys.get(issued.key.id)).last_used.timestamp() == clock.now()
        clock.advance(30)
        await app.authenticator.authenticate(issued.text)  # within the minute: not noted again
        assert (await app.keys.get(issued.key.id)).last_used.timestamp() == clock.now() - 30

    run_story(story)


def test_every_change_of_a_key_is_audited(run_story):
    async def story(app):
        await app.tenants.create("acme", actor="ann")
        issued = await app.keys.create("acme", ["read"], actor="ann")
        new = await app.keys.rotate(issued.key.id, actor="bob")
        await app.keys.revoke(new.key.id, actor="eve", reason="test")
        audit = [(entry.actor, entry.action, entry.target) for entry in await entries(app.store)]
        old, successor = f"acme/{issued.key.id}", f"acme/{new.key.id}"
        for entry in [
            ("ann", "key.create", old),
            ("bob", "key.rotate", old),
            ("bob", "key.create", successor),
            ("eve", "key.revoke", successor),
        ]:
            assert entry in audit
        assert issued.text not in str(audit)

    run_story(story)


def changed(text, field):
    letter = "0" if text[field] != "0" else "1"
    return text[:field] + letter + text[field + 1 :]


BAD = {
    "none at all": lambda text: None,
    "empty": lambda text: "",
    "another vendor's": lambda text: "sk-" + text[3:],
    "cut short": lambda text: text[:-1],
    "too long": lambda text: text + "0",
    "huge": lambda text: text * 20_000,
    "one letter mistyped": lambda text: changed(text, 20),
    "in capitals": lambda text: text.upper(),
    "with blanks around it": lambda text: f" {text} ",
    "with a null byte": lambda text: text[:-1] + "\0",
    "with a letter of another alphabet": lambda text: text[:-1] + "а",
    "half a surrogate pair": lambda text: text[:-1] + "\udcff",
    "unknown, but well made": lambda text: make_key().text,
    "another's secret under this id": lambda text: with_id_of(text),
}


def with_id_of(text):
    from holdfast.model import api_key

    body = f"hfk_{key_id(text)}_{make_key().text[17:57]}"
    return body + api_key._checksum(body)


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_key_is_refused(run_story, kind, bad):
    async def story(app):
        issued = await app.keys.create("default", ["admin"], actor="ann")
        text = BAD[bad](issued.text)
        answer = await app.authenticator.authenticate(text)
        assert isinstance(answer, Rejected)
        assert await accepted(
            app, issued.text
        )  # the good one is known now: the bad one still is not
        assert await app.authenticator.authenticate(text) == answer

    run_story(story)


def test_an_expired_key_is_refused_at_that_second_although_it_is_known(run_story, clock):
    async def story(app):
        issued = await app.keys.create("default", ["read"], actor="ann", lifetime=10)
        clock.advance(9.5)
        assert await accepted(app, issued.text)
        clock.advance(0.5)
        assert await app.authenticator.authenticate(issued.text) == Rejected(
            "expired", issued.key.id
        )
        assert [key.state for key in await app.keys.list()] == ["expired"]
        clock.advance(KEPT)
        assert await app.keys.list() == []

    run_story(story)


def test_keys_of_a_disabled_or_deleted_tenant_are_refused(run_story, clock):
    async def story(app):
        await app.tenants.create("acme", actor="ann")
        issued = await app.keys.create("acme", ["read"], actor="ann")
        assert await accepted(app, issued.text)
        await app.tenants.set("acme", actor="ann", enabled=False)
        assert await app.authenticator.authenticate(issued.text) == Rejected(
            "tenant", issued.key.id
        )
        await app.tenants.set("acme", actor="ann", enabled=True)
        assert await accepted(app, issued.text)
        await app.tenants.delete("acme", actor="ann")
        assert await app.authenticator.authenticate(issued.text) == Rejected(
            "revoked", issued.key.id
        )

    run_story(story)


def test_nobody_is_let_in_on_memory_when_the_store_is_away(run_story, clock, monkeypatch):
    async def story(app):
        issued = await app.keys.create("default", ["read"], actor="ann")
        assert await accepted(app, issued.text)

        async def away(key):
            raise StoreUnavailable("away")

        monkeypatch.setattr(app.store, "record", away)
        clock.advance(4.0)
        with pytest.raises(StoreUnavailable):
            await app.authenticator.authenticate(issued.text)

    run_story(story)


def test_what_a_key_can_not_have(run_story):
    async def story(app):
        await app.tenants.create("acme", actor="ann")
        with pytest.raises(InvalidInput, match="no scope 'root'"):
            await app.keys.create("acme", ["root"], actor="ann")
        with pytest.raises(InvalidInput, match="needs a scope"):
            await app.keys.create("acme", [], actor="ann")
        with pytest.raises(InvalidInput, match="may change all tenants"):
            await app.keys.create("acme", ["admin"], actor="ann")
        with pytest.raises(NotFound, match="holdfast tenants create nobody"):
            await app.keys.create("nobody", ["read"], actor="ann")
        issued = await app.keys.create("default", ["read"], actor="ann")
        for tenant in ("acme", "default"):
            if tenant == "acme":
                with pytest.raises(NotFound):
                    await app.keys.revoke(issued.key.id, actor="eve", tenant=tenant)
        with pytest.raises(NotFound):
            await app.keys.get("../tenants/acme")
        stored = decode_key((await app.store.record(KEYS + issued.key.id)).records[0].value)
        assert stored.revoked is None

    run_story(story)
