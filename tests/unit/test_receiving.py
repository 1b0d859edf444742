"""Messages become runs: who they belong to, what is kept of them, what resumes a run, and what
nobody ever sees."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from holdfast import Holdfast, Pipeline
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.engine import receiver, unmatched
from holdfast.engine.receiver import Room
from holdfast.errors import ConfigurationError, Permanent, StoreUnavailable
from holdfast.model.options import WorkerOptions
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter
from holdfast.settings import load

CANARY = "sk-canary-4f1c2d3e4b5a"


def jobs(broken: list[bool] | None = None, **options) -> Pipeline:
    pipeline = Pipeline("jobs", input=dict, key=lambda job: job.get("job_id"), **options)

    @pipeline.step(max_attempts=1)
    async def work(request: dict) -> str:
        if broken and broken.pop():
            raise Permanent("the machine is broken")
        return request.get("content", "")

    return pipeline


async def until(store, condition):
    """What the condition answers, as soon as that is something; it is asked when something has
    changed in the store."""
    change = 0
    async with asyncio.timeout(10):
        while not (answer := await condition()):
            change = await store.wait(change, 1.0)
    return answer


async def arrived(store):
    return await store.runs(RunFilter()) or await store.dead_letters()


class Receiving:
    """An app that receives, and a bus to publish to."""

    def __init__(self, app: Holdfast, bus: InProcessBus) -> None:
        self.app = app
        self.bus = bus

    async def send(self, id: str, body, **attributes: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in attributes.items()}
        await self.bus.publish("orders", Message(id, data, headers))

    async def settled(self, runs: int = 0, letters: int = 0):
        """All runs, newest first, once there are so many runs and dead letters, and none works."""

        async def condition():
            stored_runs = await self.app.store.runs(RunFilter())
            buried = await self.app.store.dead_letters()
            buried = [letter for letter in buried if letter.run is None]
            at_rest = all(run.state not in ("queued", "running") for run in stored_runs)
            return (
                (len(stored_runs), len(buried)) == (runs, letters)
                and at_rest
                and (stored_runs, buried)
            )

        return await until(self.app.store, condition)


def received(story, *receives: Receive, pipeline: Pipeline | None = None, worker=True):
    async def run():
        bus, declared = InProcessBus(), pipeline or jobs()
        options = WorkerOptions(poll=0.05) if worker else False
        async with Holdfast("memory:", [declared], bus=bus, worker=options) as app:
            for receive in receives or [Receive("orders", "jobs")]:
                await app.receive(receive)
            return await story(Receiving(app, bus))

    return asyncio.run(run())


JOB = {"job_id": "j-1", "user_id": "u-7", "content": "hello", "preset": "quick_social"}


# --- whose, and what is kept ----------------------------------------------------------------------


def test_attributes_message_id_and_delivery_attempt_are_kept_with_the_run():
    async def story(receiving):
        await receiving.send(
            "m1", JOB, requestId="req-1", ce_subject="x", submitted_by="an operator"
        )
        [run], _ = await receiving.settled(1)
        assert run.key == "j-1"
        assert run.attributes == {
            "requestId": "req-1",
            "ce-subject": "x",
            "message-id": "m1",
            "message-topic": "orders",
            "delivery-attempt": "1",
        }
        assert run.labels == {"user_id": "u-7", "requestId": "req-1"}

    received(story)


def test_tenant_and_labels_come_from_where_the_settings_say():
    async def story(receiving):
        await receiving.send("m1", JOB | {"meta": {"owner": "Ada@Example.org", "n": 5}}, lang="en")
        [run], _ = await receiving.settled(1)
        assert run.tenant == "Ada@Example.org"
        assert run.labels == {"who": "u-7", "n": "5", "lang": "en"}

    labels = {"who": "user_id", "n": "meta.n", "lang": "attributes.lang", "none": "meta.none"}
    received(story, Receive("orders", "jobs", tenant_from="meta.owner", labels=labels))


@pytest.mark.parametrize("owner", [None, "../x", {"a": 1}])
def test_a_message_without_a_usable_tenant_is_buried(owner):
    async def story(receiving):
        await receiving.send("m1", JOB | {"owner": owner})
        _, [letter] = await receiving.settled(0, 1)
        assert "tenant" in letter.reason

    received(story, Receive("orders", "jobs", tenant_from="owner"))


def test_what_can_not_be_a_label_is_left_out():
    async def story(receiving):
        await receiving.send("m1", JOB | {"user_id": "x" * 300}, requestId="two\nlines")
        [run], _ = await receiving.settled(1)
        assert run.labels == {}

    received(story)


# --- CloudEvents ----------------------------------------------------------------------------------

EVENT = {"specversion": "1.0", "id": "e-1", "source": "/shop", "type": "job", "lang": "en"}


@pytest.mark.parametrize("mode", ["data", "data_base64", "binary"])
def test_cloudevents_are_understood_in_both_modes(mode):
    encoded = base64.b64encode(json.dumps(JOB).encode()).decode()

    async def story(receiving):
        if mode == "binary":
            attributes = {f"ce_{name}": value for name, value in EVENT.items()}
            await receiving.send("m1", JOB, content_type="application/json", **attributes)
        else:
            event = EVENT | {mode: encoded if mode == "data_base64" else JOB}
            await receiving.send("m1", event, content_type="application/cloudevents+json")
        [run], _ = await receiving.settled(1)
        assert json.loads(run.input) == JOB
        cloudevent = {name: run.attributes[name] for name in ("ce-id", "ce-lang", "content-type")}
        assert cloudevent == {"ce-id": "e-1", "ce-lang": "en", "content-type": "application/json"}
        assert run.attributes["message-id"] == "/shop#e-1"

    received(story)


def test_a_cloudevent_that_is_published_twice_is_one_run():
    async def story(receiving):
        event = EVENT | {"data": {"content": "x"}}
        for number in range(2):
            await receiving.send(f"m{number}", event, content_type="application/cloudevents+json")
        await receiving.send(
            "m3", event | {"id": "e-2"}, content_type="application/cloudevents+json"
        )
        await receiving.settled(2)

    received(story)


@pytest.mark.parametrize("event", [{}, EVENT | {"id": ""}, EVENT | {"data_base64": "?"}, 5])
def test_a_broken_structured_event_is_buried_with_its_bytes(event):
    async def story(receiving):
        await receiving.send("m1", event, content_type="application/cloudevents+json")
        _, [letter] = await receiving.settled(0, 1)
        assert json.loads(letter.body) == event

    received(story)


# --- again ----------------------------------------------------------------------------------------


def test_a_new_message_for_a_failed_run_resumes_it_and_the_same_one_does_not():
    async def story(receiving):
        await receiving.send("m1", JOB)
        [run], _ = await receiving.settled(1)
        assert run.state == "failed"
        await receiving.send("m1", JOB)
        await receiving.send("m2", JOB)
        [run] = await resumed(receiving, 1)
        assert run.state == "failed"
        await receiving.send("m2", JOB)
        await receiving.send("m1", JOB)
        await receiving.send("m3", JOB)
        [run] = await resumed(receiving, 2)
        assert run.state == "succeeded"
        await receiving.send("m4", JOB)  # acknowledged: it is done
        await receiving.send("last", JOB | {"job_id": "j-2"})
        await receiving.settled(2)
        history = await receiving.app.store.history(run.id)
        messages = [json.loads(e.data)["message"] for e in history if e.type == "run.resumed"]
        assert messages == ["m2", "m3"]

    async def resumed(receiving, count):
        async def condition():
            runs, _ = await receiving.settled(1)
            history = await receiving.app.store.history(runs[0].id)
            return sum(event.type == "run.resumed" for event in history) >= count and runs

        return await until(receiving.app.store, condition)

    received(story, pipeline=jobs([False, True, True]))


def test_the_same_key_with_other_content_is_one_dead_letter_that_says_so():
    async def story(receiving):
        await receiving.send("m1", JOB)
        await receiving.settled(1)
        for _ in range(2):
            await receiving.send("m2", JOB | {"content": "other"})
        [run], [letter] = await receiving.settled(1, 1)
        assert "'j-1'" in letter.reason
        assert run.id in letter.reason
        assert "another input" in letter.reason

    received(story)


# --- filters --------------------------------------------------------------------------------------

METADATA = Receive("orders", "jobs", "metadata", "NOT attributes:worker-type")
OTHERS = Receive("orders", "jobs", "other", 'attributes.worker-type = "transcription"')


def test_filters_share_a_topic_and_what_nobody_wants_is_buried():
    async def story(receiving):
        await receiving.send("m1", {"content": "a"})
        await receiving.send("m2", {"content": "b"}, worker_type="transcription")
        await receiving.send("m3", {"content": "c", "apiKey": CANARY}, worker_type="nobody")
        runs, [letter] = await receiving.settled(2, 1)
        assert {json.loads(run.input)["content"] for run in runs} == {"a", "b"}
        assert letter.id == "message:orders:m3"
        assert "no subscription of topic orders wants it" in letter.reason
        assert "NOT attributes:worker-type" in letter.reason
        assert CANARY.encode() not in letter.body

    received(story, METADATA, OTHERS)


def test_what_another_process_receives_is_not_buried():
    async def story():
        bus, first, second = InProcessBus(), jobs(), jobs()
        async with Holdfast("memory:", [first], bus=bus, worker=False) as app:
            await app.receive(METADATA)
            other = Holdfast(app.store, [second], bus=bus, worker=False)
            await unmatched.register(app.runtime, OTHERS)
            receiving = Receiving(app, bus)
            await receiving.send("m2", {"content": "b"}, worker_type="transcription")
            await receiving.send("m3", {"content": "b"}, worker_type="nobody")
            letters = await until(app.store, app.store.dead_letters)
            assert [letter.id for letter in letters] == ["message:orders:m3"]
            await other.close()

    asyncio.run(story())


def test_a_topic_may_ignore_what_nobody_wants():
    async def story(receiving):
        await receiving.send("m3", {"content": "c"}, worker_type="nobody")
        await receiving.send("m1", {"content": "a"})
        await receiving.settled(1)

    received(
        story, Receive("orders", "jobs", "x", "NOT attributes:worker-type", unmatched="ignore")
    )


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"job_id": "j-1", "apiKey": CANARY},
        {"job_id": "j-1", "config": {"env": {"OPENAI_API_KEY": CANARY}, "list": [CANARY]}},
        {"job_id": "j-1", "credentials": {"any": ["x", {"thing": CANARY}]}},
        {"job_id": 5, "secret": CANARY},
        {"job_id": "x" * 300, "api_key": CANARY, "note": f"use {CANARY} for it"},
    ],
)
def test_secret_fields_are_masked_before_anything_is_stored(body, caplog):
    caplog.set_level("DEBUG")

    async def story(receiving):
        await receiving.send("m1", body, authorization=f"Bearer {CANARY}", plain="kept")
        await until(receiving.app.store, lambda: arrived(receiving.app.store))
        for run in await receiving.app.store.runs(RunFilter()):
            assert CANARY not in repr(run)
            assert "***" in run.input
            assert run.attributes["authorization"] == "***"
            assert run.attributes["plain"] == "kept"
            assert CANARY not in repr(await receiving.app.store.history(run.id))
        for letter in await receiving.app.store.dead_letters():
            assert CANARY not in repr(letter)
            assert b"***" in letter.body

    received(story)
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b'{"apiKey": "%s", "broken' % CANARY.encode(),
        b'{"apiKey": "%s' % CANARY.encode(),
        b"\xff\xfe password: %s\n" % CANARY.encode(),
        b'{"api\xffkey": 1, "token": "%s"' % CANARY.encode(),
    ],
)
def test_secrets_are_masked_in_what_is_no_json_either(body):
    async def story(receiving):
        await receiving.send("m1", body)
        _, [letter] = await receiving.settled(0, 1)
        assert CANARY.encode() not in letter.body
        assert letter.body[:2] == body[:2]

    received(story)


def test_bytes_without_secrets_are_kept_as_they_came():
    body = b'{ "job_id":\t5, "token_count": 7, "max_tokens": "many", "key": "k" }'

    async def story(receiving):
        await receiving.send("m1", body)
        _, [letter] = await receiving.settled(0, 1)
        assert letter.body == body

    received(story, pipeline=jobs_of_texts())


def jobs_of_texts() -> Pipeline:
    pipeline = Pipeline("jobs", input=dict[str, str])

    @pipeline.step
    def work(request: dict[str, str]) -> int:
        return 1

    return pipeline


def keyed(keys: list[str | None]) -> Pipeline:
    pipeline = Pipeline("jobs", input=dict, key=lambda job: job["job_id"])

    @pipeline.step(max_attempts=1)
    async def work(request: dict, ctx) -> int:
        keys.append(await ctx.secret("OPENAI_API_KEY", "api_key"))
        if request.get("leak"):
            raise ValueError(f"the key {keys[-1]} was refused")
        return 1

    return pipeline


def test_a_job_key_is_known_to_the_process_that_received_it():
    keys: list[str | None] = []

    async def story(receiving):
        await receiving.send("m1", {"job_id": "a", "config": {"openaiApiKey": CANARY}})
        await receiving.send("m2", {"job_id": "b"})
        await receiving.settled(2)
        assert sorted(map(str, keys)) == ["None", CANARY]

    received(story, pipeline=keyed(keys))


def test_what_a_step_says_about_its_key_is_masked(caplog):
    async def story(receiving):
        await receiving.send("m1", {"job_id": "a", "leak": True, "apiKey": "tops3cret value"})
        [run], _ = await receiving.settled(1)
        assert "tops3cret" not in repr(run)
        assert "tops3cret" not in repr(await receiving.app.store.history(run.id))

    received(story, pipeline=keyed([]))
    assert "tops3cret" not in caplog.text


def test_another_process_pauses_the_run_until_a_message_brings_the_key_again():
    async def story():
        bus, keys = InProcessBus(), []
        pipeline = keyed(keys)
        async with Holdfast("memory:", [pipeline], bus=bus, worker=False) as receiver:
            await receiver.receive("orders", pipeline)
            receiving = Receiving(receiver, bus)
            await receiving.send("m1", {"job_id": "a", "api_key": CANARY})
            await until(receiver.store, lambda: receiver.store.runs(RunFilter()))
            worker = Holdfast(receiver.store, [pipeline], worker=WorkerOptions(poll=0.05))
            await worker.open()
            [run], _ = await receiving.settled(1)
            assert run.state == "paused"
            assert run.reason.startswith("needs the key that came with its message (api_key)")
            assert keys == []
            await worker.worker.stop()
            own = Holdfast(receiver.store, [pipeline], bus=bus, worker=WorkerOptions(poll=0.05))
            await own.receive("orders", pipeline, subscription="again")
            await receiving.send("m1", {"job_id": "a", "api_key": CANARY})
            succeeded = RunFilter(state="succeeded")
            await until(receiver.store, lambda: receiver.store.runs(succeeded))
            assert keys == [CANARY]
            await own.worker.stop()

    asyncio.run(story())


# --- room -----------------------------------------------------------------------------------------


def test_at_most_so_many_messages_and_bytes_are_in_the_works():
    async def story():
        room = Room(2, 100)
        await room.enter(90)
        waits = asyncio.create_task(room.enter(20))
        await asyncio.sleep(0)
        assert not waits.done()
        room.leave(90)
        await waits
        await room.enter(20)
        third = asyncio.create_task(room.enter(1))
        await asyncio.sleep(0)
        assert not third.done()
        room.leave(20)
        await third
        room.leave(20)
        room.leave(1)
        await room.enter(1000)  # one is always let in

    asyncio.run(asyncio.wait_for(story(), 5))


# --- settings -------------------------------------------------------------------------------------

TOML = """
[[receive]]
topic = "work"
pipeline = "metadata"
subscription = "metadata-worker-subscription"
filter = 'NOT attributes:worker-type'
tenant_from = "user_id"
labels = { user_id = "user_id", request = "attributes.requestId" }
max_messages = 5
max_bytes = "10MB"
dead_letter_topic = "work-dlq"

[[receive]]
topic = "work"
pipeline = "transcription"
filter = 'attributes.worker-type = "transcription"'
"""


def settings_of(tmp_path, text="", **env):
    (tmp_path / "holdfast.toml").write_text(text)
    return load(env={"HOME": str(tmp_path), **env}, cwd=tmp_path)


def test_what_is_received_is_a_setting(tmp_path):
    loaded = settings_of(tmp_path, TOML)
    first, second = loaded.settings.receive
    assert first == Receive(
        "work",
        "metadata",
        "metadata-worker-subscription",
        "NOT attributes:worker-type",
        tenant_from="user_id",
        labels={"user_id": "user_id", "request": "attributes.requestId"},
        max_bytes=10_000_000,
        dead_letter_topic="work-dlq",
    )
    assert (second.group, second.max_messages, second.max_bytes) == (
        "holdfast-transcription",
        5,
        500 * 1024 * 1024,
    )
    assert loaded.shown("receive").startswith("work=metadata (NOT attributes:worker-type), work=")


def test_what_is_received_can_stand_in_the_environment(tmp_path):
    loaded = settings_of(tmp_path, HOLDFAST_RECEIVE="jobs=report, more=other")
    assert loaded.settings.receive == (Receive("jobs", "report"), Receive("more", "other"))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ('topic = "t"', "pipeline"),
        ('topic = "t"\npipeline = "p"\nfilters = ""', "filters"),
        ('topic = "t"\npipeline = "p"\nfilter = "attributes.x == 1"', "expected a string"),
        ('topic = "t"\npipeline = "p"\nmax_messages = 0', "at least 1"),
        ('topic = "t"\npipeline = "p"\ntenant = "a b"', "not usable"),
        ('topic = "t"\npipeline = "p"\ntenant = "a"\ntenant_from = "b"', "give one of them"),
        ('topic = ""\npipeline = "p"', "needs a topic"),
        ('topic = "t"\npipeline = "p"\n[[receive]]\ntopic = "t"\npipeline = "p"', "of its own"),
    ],
)
def test_a_wrong_receive_is_an_error_when_it_is_read(tmp_path, table, reason):
    with pytest.raises(Exception, match=reason):
        settings_of(tmp_path, f"[[receive]]\n{table}")


def test_a_wrong_filter_points_at_the_place(tmp_path):
    with pytest.raises(ConfigurationError) as error:
        settings_of(tmp_path, '[[receive]]\ntopic="t"\npipeline="p"\nfilter="attributes:a AND"')
    assert "\n  attributes:a AND\n" in str(error.value)
    assert str(error.value).endswith("^")


def test_while_the_store_is_away_few_messages_are_refused_and_none_often(monkeypatch):
    """A broker puts aside what was refused too often: an outage must not use up all deliveries of
    all messages."""
    monkeypatch.setattr(receiver, "NACK_DELAY", 0.0)
    monkeypatch.setattr(receiver, "PROBE_INTERVAL", 0.0)
    refused: list[str] = []
    nack = receiver.nack

    async def counted(delivery, topic, error):
        refused.append(delivery.message.id)
        await nack(delivery, topic, error)

    monkeypatch.setattr(receiver, "nack", counted)

    async def story():
        bus = InProcessBus()
        async with Holdfast("memory:", [jobs()], bus=bus, worker=False) as app:
            await app.receive(Receive("orders", "jobs", max_messages=3))
            probes = 0

            async def away(*_):
                nonlocal probes
                probes += 1
                raise StoreUnavailable("away")

            with monkeypatch.context() as outage:
                outage.setattr(app.store, "apply", away)
                outage.setattr(app.runtime.records, "get", away)
                for number in range(30):
                    body = json.dumps({"job_id": f"job-{number}"}).encode()
                    await bus.publish("orders", Message(f"m-{number}", body))
                async with asyncio.timeout(10):
                    while probes < 100:  # noqa: ASYNC110  (nothing else tells)
                        await asyncio.sleep(0)
            await until(app.store, lambda: _queued(app.store, 30))

    asyncio.run(story())
    assert len(refused) == len(set(refused)) <= 3


async def _queued(store, count):
    return (await store.count(RunFilter())).get("queued") == count


def test_what_another_process_receives_is_not_buried_here():
    """Also before the other one was ever started, and if it has a store of its own."""
    first = Receive("orders", "jobs", "first", "NOT attributes:kind")
    second = Receive("orders", "later", "second", 'attributes.kind = "second"')

    async def story():
        bus = InProcessBus()
        async with Holdfast("memory:", [jobs()], bus=bus, worker=False) as app:
            await app.received_elsewhere(second)
            await app.receive(first)
            for number, kind in enumerate(("second", "nobody", "second", "nobody")):
                await bus.publish("orders", Message(f"m-{number}", b"{}", {"kind": kind}))
            letters = await until(app.store, lambda: _buried(app.store, 2))
            return [letter.id for letter in letters]

    assert sorted(asyncio.run(story())) == ["message:orders:m-1", "message:orders:m-3"]


async def _buried(store, count):
    letters = await store.dead_letters()
    return letters if len(letters) >= count else None
