"""What PostgreSQL can't store by itself comes back all the same: U+0000, and the character that
stands for it."""

from __future__ import annotations

import asyncio

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.postgres.conftest import Schema

from holdfast.adapters.postgres.text import seal, seal_text, unseal
from holdfast.model.commands import Bury, Cancel, LogLine, PauseRun, Quarantine, Settle
from holdfast.model.run import ErrorInfo
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import a_checkpoint, a_claim, a_submit

ODD = "a\0b\uffff0\uffffc\\u0000\\\0\\\\\0'\"$1%"
NAME = ODD.replace("\0", "")
"""Names and ids hold no U+0000 on any store."""


@given(st.lists(st.text(st.sampled_from('\0\uffff01\\u"a☃'))))
def test_sealing_is_undone_by_unsealing(texts: list[str]) -> None:
    body = msgspec.json.encode(texts)
    assert msgspec.json.decode(unseal(seal(body))) == texts
    inside = msgspec.json.decode(seal(body))
    assert "\0" not in "".join(inside)
    assert inside == [seal_text(text) for text in texts]


def test_odd_text_survives_in_every_field(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as store:
            await store.apply(
                [a_submit("r1", key=ODD, tenant=NAME, input=msgspec.json.encode(ODD).decode())]
            )
            [claimed] = (await store.apply([a_claim(worker=NAME)]))[0]
            assert (claimed.tenant, msgspec.json.decode(claimed.input)) == (NAME, ODD)
            await store.apply(
                [
                    a_checkpoint(
                        "r1", 1, NAME, ODD, value=ODD, checksum=ODD, record='{"a":"\\u0000"}'
                    ),
                    LogLine("r1", 1, "info", NAME, ODD, '{"a":"\\u0000\uffff"}'),
                ]
            )
            [checkpoint] = await store.checkpoints("r1", NAME)
            assert (checkpoint.step, checkpoint.key, checkpoint.value, checkpoint.checksum) == (
                NAME,
                ODD,
                ODD,
                ODD,
            )
            assert checkpoint.record == '{"a":"\\u0000"}'
            [line] = await store.logs("r1")
            assert (line.step, line.message, line.fields) == (NAME, ODD, '{"a":"\\u0000\uffff"}')
            assert await store.apply([Quarantine("r1", 1, NAME, ODD, ODD)]) == [1]
            assert await store.quarantined("r1") == [(NAME, ODD, ODD)]
            event = (await store.history("r1"))[-1]
            assert msgspec.json.decode(event.data) == {"step": NAME, "key": ODD, "reason": ODD}
            assert [run.id for run in await store.runs(RunFilter(tenant=NAME, key=ODD))] == ["r1"]
            run = await store.run("r1")
            assert run is not None
            assert run.worker == NAME

    asyncio.run(story())


def test_odd_text_survives_in_failures_and_interventions(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as store:
            await store.apply([a_submit(f"r{number}", tenant=NAME) for number in range(3)])
            await store.apply([a_claim(limit=1)])
            error = msgspec.json.encode(ErrorInfo("Odd", ODD)).decode()
            progress = '{"steps":{"\\u0000":{"step":"a","status":"failed"}}}'
            await store.apply([Settle("r0", 1, "failed", error=error, progress=progress)])
            run, letter = await store.run("r0"), await store.dead_letter("run:r0")
            assert run is not None
            assert letter is not None
            assert run.error == ErrorInfo("Odd", ODD)
            assert list(run.progress.steps) == ["\0"]
            assert (letter.reason, letter.tenant) == (f"Odd: {ODD}", NAME)
            await store.apply([Cancel("r1", ODD, ODD), PauseRun("r2", ODD, ODD)])
            for name in ("r1", "r2"):
                data = msgspec.json.decode((await store.history(name))[-1].data)
                assert (data["actor"], data["reason"]) == (ODD, ODD)
            assert [(entry.actor, entry.reason) for entry in await store.audit()] == [
                (ODD, ODD)
            ] * 2
            await store.apply([Bury(NAME, ODD, ODD, ODD.encode(), {ODD: ODD}, NAME)])
            buried = await store.dead_letter(NAME)
            assert buried is not None
            assert (buried.id, buried.source, buried.reason, buried.body) == (
                NAME,
                ODD,
                ODD,
                ODD.encode(),
            )
            assert buried.attributes == {ODD: ODD}

    asyncio.run(story())


def test_a_dead_letter_of_a_run_keeps_the_original_bytes(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as store:
            text = '"\uffff1\uffff \\u0000 ☃"'
            await store.apply([a_submit("r1", input=text), a_claim()])
            await store.apply([Settle("r1", 1, "failed", error='{"name":"E","message":""}')])
            letter = await store.dead_letter("run:r1")
            assert letter is not None
            assert letter.body == text.encode()

    asyncio.run(story())
