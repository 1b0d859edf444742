"""Projections: what leaves the store, told by stories of a worker and the systems that listen."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from holdfast import (
    CommittedEvent,
    Context,
    DefinitionError,
    Document,
    DocumentProjection,
    Holdfast,
    MessageProjection,
    Outgoing,
    Permanent,
    Pipeline,
    Removal,
    RunSnapshot,
    Transient,
)
from holdfast.adapters.memory.documents import MemoryDocuments
from holdfast.engine import cursors
from holdfast.engine.publishing import MessageTarget
from holdfast.engine.relay import Relay
from holdfast.errors import ConfigurationError, Conflict, NotFound
from holdfast.model.commands import Bury, Prune
from holdfast.model.event import Event
from holdfast.ports.bus import Message
from holdfast.services.projections import (
    drop_projection,
    list_projections,
    rebuild_projection,
)


class Topics:
    """A bus that keeps what is published, and refuses topics when told."""

    def __init__(self) -> None:
        self.published: list[tuple[str, Message]] = []
        self.broken: dict[str, Exception] = {}

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def publish(self, topic: str, message: Message) -> None:
        if topic in self.broken:
            raise self.broken[topic]
        self.published.append((topic, message))

    def to(self, topic: str) -> list[Any]:
        return [json.loads(message.body) for name, message in self.published if name == topic]


@pytest.fixture
def bus() -> Topics:
    return Topics()


def jobs(**options: Any) -> Pipeline[Any]:
    """The results of a job worker, in the shape that its readers know."""
    pipeline = Pipeline("jobs", **options)

    @pipeline.step
    def work(input: dict[str, Any]) -> dict[str, Any]:
        if input.get("break"):
            raise Permanent("no such file")
        return {"text": "x" * input.get("size", 1)}

    @pipeline.publishes(events=["run.completed", "run.failed"])
    def results(event: CommittedEvent) -> Outgoing:
        is_success = event.type == "run.completed"
        return Outgoing(
            "results",
            {
                "job_id": event.subject,
                "status": "success" if is_success else "error",
                "output": event.result,
                "error": None if is_success else event.data["error"]["message"],
                "execution_time_ms": event.data["execution_time_ms"],
            },
            {"kind": event.input["kind"]},
            ordering_key=event.subject,
        )

    return pipeline


# --- messages ---


def test_a_result_is_a_message_of_its_own_shape(lab, bus):
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"}, key="j-1")
    engine.submit(pipeline, {"kind": "b", "break": True}, key="j-2")
    engine.advance(3.0)
    messages = {m.ordering_key: m for topic, m in bus.published if topic == "results"}
    assert set(messages) == {"j-1", "j-2"}
    body = json.loads(messages["j-1"].body)
    assert body.pop("execution_time_ms") >= 0
    assert body == {"job_id": "j-1", "status": "success", "output": {"text": "x"}, "error": None}
    assert json.loads(messages["j-2"].body)["error"] == "no such file"
    assert messages["j-2"].attributes == {"kind": "b"}


def test_a_large_result_is_there_for_the_function(lab, bus):
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a", "size": 100_000})
    engine.advance(3.0)
    [result] = bus.to("results")
    assert len(result["output"]["text"]) == 100_000


def test_an_id_is_made_of_projection_event_and_place(lab, bus):
    pipeline = jobs()

    @pipeline.publishes(events=["run.queued"])
    def stages(event: CommittedEvent) -> list[Outgoing]:
        return [Outgoing("stage", {"n": n}) for n in range(3)]

    engine = lab(pipeline, bus=bus)
    run = engine.submit(pipeline, {"kind": "a"})
    engine.advance(3.0)
    ids = [message.id for topic, message in bus.published if topic == "stage"]
    name = f"jobs.stages:{run.id}:1"
    assert ids == [name, f"{name}/1", f"{name}/2"]


def test_events_say_where_a_run_comes_from_and_goes_to(lab, bus):
    states: list[tuple[str | None, str | None]] = []
    pipeline = jobs()

    @pipeline.publishes
    def changes(event: CommittedEvent) -> None:
        if event.after is not None:
            states.append((event.before, event.after))

    engine = lab(pipeline, bus=bus)
    run = engine.submit(pipeline, {"kind": "a"})
    engine.operate("pause", run.id)
    engine.operate("resume", run.id)
    engine.advance(3.0)
    other = engine.submit(pipeline, {"kind": "a"}, delay=1000)
    engine.operate("cancel", other.id)
    engine.advance(3.0)
    assert states == [
        (None, "queued"),
        ("queued", "paused"),
        ("paused", "queued"),
        ("queued", "running"),
        ("running", "succeeded"),
        (None, "queued"),
        ("queued", "cancelled"),
    ]


def test_labels_and_attributes_of_the_request_are_there(lab, bus):
    pipeline = jobs()
    events: list[CommittedEvent] = []
    pipeline.publishes(events=["run.queued"], name="seen")(events.append)
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"}, tenant="acme", key="k", labels={"user_id": "42"})
    engine.advance(3.0)
    [event] = events
    assert (event.tenant, event.pipeline, event.key, event.input) == (
        "acme",
        "jobs",
        "k",
        {"kind": "a"},
    )
    assert (event.labels, event.attributes, event.result) == ({"user_id": "42"}, {}, None)


def test_a_projection_of_an_app_is_about_all_pipelines_and_dead_letters(lab, bus):
    messages: list[tuple[str, str, bytes | None]] = []

    def audit(event: CommittedEvent) -> Outgoing:
        messages.append((event.pipeline, event.type, event.body))
        return Outgoing("audit", event.data)

    first, second = jobs(), Pipeline("two")
    second.step(name="a")(lambda: 1)
    engine = lab(
        first, second, bus=bus, projections=[MessageProjection(name="audit", function=audit)]
    )
    engine.submit(first, {"kind": "a"})
    engine.submit(second)
    engine.call(engine.store.apply([Bury("message:t:1", "t", "bad", b"\x00", {"a": "b"}, "acme")]))
    engine.advance(3.0)
    assert {pipeline for pipeline, _, _ in messages} == {"jobs", "two", ""}
    assert ("", "message.dead_lettered", b"\x00") in messages


def test_a_projection_of_a_pipeline_gets_buried_messages_if_it_names_them(lab, bus):
    pipeline = jobs()

    @pipeline.publishes(events=["message.dead_lettered"])
    def dead(event: CommittedEvent) -> Outgoing:
        return Outgoing("dead", {"reason": event.data["reason"], "body": event.body})

    engine = lab(pipeline, bus=bus)
    engine.call(engine.store.apply([Bury("message:t:1", "t", "bad", b"x")]))
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(3.0)
    assert bus.to("dead") == [{"reason": "bad", "body": "x"}]


def test_without_history_it_begins_with_what_happens_from_now_on(lab, bus):
    pipeline = jobs()
    engine = lab(pipeline)
    engine.submit(pipeline, {"kind": "old"})
    engine.drain()
    events: list[Event] = []
    projection = MessageProjection(name="new", function=events.append, history=False)
    relay = relay_of(engine, projection, bus)
    assert engine.call(relay.drain()) == 0
    run = engine.submit(pipeline, {"kind": "new"})
    engine.call(relay.drain())
    assert [event.id for event in events] == [f"{run.id}:1"]


def relay_of(engine: Any, projection: MessageProjection, bus: Topics) -> Relay:
    runtime = engine.app.runtime
    return Relay(runtime, MessageTarget(projection, bus, runtime), "tester")


# --- failures ---


def test_one_dead_endpoint_stops_no_other(lab, bus):
    pipeline = jobs()
    pipeline.publishes(name="hook")(lambda event: Outgoing("hook", {}))
    bus.broken["hook"] = Transient("nobody answers")
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(10.0)
    assert len(bus.to("results")) == 1
    assert len(bus.to("holdfast-events")) == 4
    cursor = engine.call(cursors.load(engine.app.runtime.records, "hook"))
    assert (cursor.position, cursor.state.failing, cursor.state.error) == (
        0,
        True,
        "nobody answers",
    )
    bus.broken.clear()
    engine.advance(5.0)
    assert len(bus.to("hook")) == 4
    cursor = engine.call(cursors.load(engine.app.runtime.records, "hook"))
    assert (cursor.state.failing, cursor.state.error) == (False, "nobody answers")


def test_a_function_that_fails_leaves_a_dead_letter_and_goes_on(lab, bus):
    pipeline = jobs()

    @pipeline.publishes(events=["run.queued"])
    def picky(event: CommittedEvent) -> Outgoing:
        return Outgoing("picky", event.input["must"])

    engine = lab(pipeline, bus=bus)
    bad = engine.submit(pipeline, {"kind": "a"})
    engine.submit(pipeline, {"kind": "a", "must": 1})
    engine.advance(5.0)
    assert bus.to("picky") == [1]
    [letter] = engine.call(engine.store.dead_letters())
    assert letter.id == f"projection:jobs.picky:{bad.id}:1"
    assert (letter.source, letter.reason) == ("projection:jobs.picky", "KeyError: 'must'")
    assert "picky" in letter.attributes["traceback"]
    assert msgspec.json.decode(letter.body)["run"] == bad.id
    cursor = engine.call(cursors.load(engine.app.runtime.records, "jobs.picky"))
    assert (cursor.state.error, cursor.state.failing) == ("'must'", False)


def test_hostile_errors_and_long_names_become_dead_letters_too(lab, bus):
    pipeline = jobs()

    @pipeline.publishes(name="n" * 128, events=["message.dead_lettered"])
    def broken(event: CommittedEvent) -> None:
        raise ValueError("half a pair: \ud800, and \0")

    engine = lab(pipeline, bus=bus)
    engine.call(engine.store.apply([Bury("m" * 250, "t", "bad", b"x")]))
    engine.advance(5.0)
    letters = engine.call(engine.store.dead_letters())
    assert len(letters) == 2
    assert engine.call(cursors.load(engine.app.runtime.records, "n" * 128)).position > 0


def test_what_the_bus_refuses_for_good_is_a_dead_letter(lab, bus):
    bus.broken["results"] = Permanent("too large")
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(5.0)
    [letter] = engine.call(engine.store.dead_letters())
    assert letter.reason == "Permanent: too large"


def test_broken_projections_do_not_feed_one_another(lab, bus):
    def broken(event: CommittedEvent) -> None:
        raise ValueError("always")

    both = [MessageProjection(name=name, function=broken) for name in ("a", "b")]
    pipeline = jobs()
    engine = lab(pipeline, bus=bus, projections=both)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(60.0)
    letters = engine.call(engine.store.dead_letters())
    assert len(letters) == 8  # each of the run's four events, for each of the two


def test_a_dead_letter_of_a_projection_can_be_redriven(lab, bus):
    bus.broken["results"] = Permanent("too large")
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"}, key="j-1")
    engine.advance(5.0)
    [letter] = engine.call(engine.store.dead_letters())
    with pytest.raises(Permanent, match="too large"):
        engine.operate("redrive", letter.id)
    bus.broken.clear()
    assert engine.operate("redrive", letter.id)
    assert [result["job_id"] for result in bus.to("results")] == ["j-1"]
    assert not engine.operate("redrive", letter.id)
    assert len(bus.to("results")) == 1


# --- looking and changing ---


def test_people_see_how_far_each_is_and_who_runs_it(lab, bus):
    bus.broken["results"] = Transient("nobody answers")
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(5.0)
    records = engine.app.runtime.records
    events, results = engine.call(list_projections(engine.store, records))
    assert (events.name, events.behind, events.oldest, events.error) == ("events", 0, None, None)
    assert (results.name, results.behind, results.failing) == ("jobs.results", 1, True)
    assert results.error == "nobody answers"
    assert results.oldest is not None
    assert events.holder == results.holder == engine._worker.worker.name


def test_a_projection_that_runs_is_not_dropped(lab, bus):
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(5.0)
    records = engine.app.runtime.records
    with pytest.raises(Conflict, match=r"projection 'jobs\.results' runs in"):
        engine.call(drop_projection(engine.store, records, "jobs.results"))
    engine.stop()
    engine.call(drop_projection(engine.store, records, "jobs.results"))
    with pytest.raises(NotFound, match="projections list"):
        engine.call(drop_projection(engine.store, records, "jobs.results"))
    assert [cursor.name for cursor in engine.call(cursors.registered(records))] == ["events"]


def test_a_rebuilt_projection_sends_the_same_messages_again(lab, bus):
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(5.0)
    engine.call(rebuild_projection(engine.app.runtime.records, "jobs.results"))
    engine.advance(5.0)
    first, second = [message for topic, message in bus.published if topic == "results"]
    assert first == second


def test_rebuilt_documents_are_written_over_those_that_are_as_new(lab):
    pipeline = documented()
    documents = MemoryDocuments()
    engine = lab(pipeline, documents=documents)
    engine.submit(pipeline, 1, key="k")
    engine.advance(5.0)
    documents._entries["state:k"] = replace(documents._entries["state:k"], body=b'"old shape"')
    engine.call(rebuild_projection(engine.app.runtime.records, "jobs.state"))
    engine.advance(5.0)
    assert read(documents, "state:k")["state"] == "succeeded"


def test_a_worker_that_stops_sends_what_its_last_run_left(lab, bus):
    pipeline = jobs()
    engine = lab(pipeline, bus=bus)
    engine.advance(1.0)
    run = engine.submit(pipeline, {"kind": "a"})
    engine.world.run_until(lambda: engine.info(run).state == "succeeded")
    engine.stop()
    assert len(bus.to("results")) == 1


# --- retention ---


def test_retention_waits_for_the_slowest_projection(lab, bus):
    pipeline = jobs()
    pipeline.publishes(name="hook")(lambda event: Outgoing("hook", {}))
    bus.broken["hook"] = Transient("nobody answers")
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(5.0)

    def prune() -> int:
        sent = engine.call(cursors.slowest(engine.app.runtime.records))
        [pruned] = engine.call(engine.store.apply([Prune(0.0, 0.0, sent=sent)]))
        return len(pruned)

    assert prune() == 0
    bus.broken.clear()
    engine.advance(5.0)
    assert prune() == 1


def test_retention_waits_for_none_if_none_is_registered(lab):
    pipeline = jobs()
    engine = lab(pipeline)
    engine.submit(pipeline, {"kind": "a"})
    engine.drain()
    assert engine.call(cursors.slowest(engine.app.runtime.records)) is None


# --- documents ---


def documented(**options: Any) -> Pipeline[Any]:
    pipeline = Pipeline("jobs")

    @pipeline.step
    async def work(input: int, ctx: Context) -> int:
        for count in range(input):
            ctx.progress(count, input)
            await asyncio.sleep(1)
        return input

    @pipeline.documents(**options)
    def state(snapshot: RunSnapshot) -> list[Document | Removal]:
        run = snapshot.run
        progress = run.progress.steps.get("work")
        body = {"state": run.state, "done": progress.done if progress else None}
        lock = f"lock:{snapshot.subject}"
        return [
            Document(f"state:{snapshot.subject}", {**body, "result": snapshot.result}),
            Document(lock, run.worker or "") if run.state == "running" else Removal(lock),
        ]

    return pipeline


def read(documents: MemoryDocuments, key: str) -> Any:
    body = documents.read(key)
    return None if body is None else json.loads(body)


def test_a_document_follows_its_run(lab):
    pipeline = documented()
    documents = MemoryDocuments()
    engine = lab(pipeline, documents=documents)
    engine.submit(pipeline, 20, key="k")
    states = []
    for _ in range(12):
        engine.advance(2.0)
        states.append(read(documents, "state:k"))
    assert [state["state"] for state in states[:3]] == ["running"] * 3
    counts = [state["done"] for state in states if state["done"] is not None]
    assert counts == sorted(counts)
    assert len(set(counts)) > 4
    assert states[-1] == {"state": "succeeded", "done": None, "result": 20}
    assert documents.read("lock:k") is None


def test_a_run_that_takes_over_the_key_takes_over_the_document(lab):
    pipeline = documented()
    documents = MemoryDocuments()
    engine = lab(pipeline, documents=documents)
    engine.submit(pipeline, 1, key="k")
    engine.advance(5.0)
    engine.call(engine.store.apply([Prune(0.0, 0.0)]))
    engine.submit(pipeline, 2, key="k", delay=3600)
    engine.advance(5.0)
    assert read(documents, "state:k")["state"] == "queued"


class Broken:
    """Documents that nobody can write."""

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        raise Transient("away")

    async def delete(self, key: str, *, version: str) -> bool:
        raise Transient("away")

    async def close(self) -> None:
        """Nothing to do."""


def test_documents_that_are_away_stop_no_run_and_no_other_projection(lab, bus):
    pipeline = documented(to=Broken())
    pipeline.publishes(name="out", events=["run.completed"])(lambda event: Outgoing("out", {}))
    engine = lab(pipeline, bus=bus)
    run = engine.submit(pipeline, 3)
    engine.advance(15.0)
    assert engine.result(run) == 3
    assert bus.to("out") == [{}]


def test_results_of_steps_are_there_for_who_asks_for_them(lab):
    pipeline = Pipeline("p")
    pipeline.step(name="big")(lambda: "x" * 50_000)
    pipeline.step(name="small")(lambda big: len(big))
    documents: list[dict[str, str]] = []

    @pipeline.documents(results=True)
    def state(snapshot: RunSnapshot) -> None:
        assert list(snapshot.steps) == ["big", "small"]
        documents.append({c.step: c.value for c in snapshot.checkpoints})

    engine = lab(pipeline, documents=MemoryDocuments())
    engine.submit(pipeline)
    engine.advance(5.0)
    assert documents[-1] == {"big": '"' + "x" * 50_000 + '"', "small": "50000"}


# --- declaring ---


def test_a_projection_is_declared_once(lab):
    pipeline = jobs()
    with pytest.raises(DefinitionError, match=r"already has a projection 'jobs\.results'"):
        pipeline.publishes(name="jobs.results")(lambda event: None)
    own = MessageProjection(name="events", function=lambda event: None)
    with pytest.raises(DefinitionError, match="two projections are called 'events'"):
        Holdfast("memory:", projections=[own])


def test_mistakes_are_said_when_it_is_declared():
    with pytest.raises(DefinitionError, match=r"no event 'run\.complete'; did you mean"):
        Pipeline("p").publishes(name="x", events=["run.complete"])(lambda event: None)
    with pytest.raises(DefinitionError, match="projection name 'a b' is not usable"):
        DocumentProjection(name="a b", function=lambda run: None)
    with pytest.raises(DefinitionError, match="projection name 5 is not usable"):
        DocumentProjection(name=5, function=lambda run: None)
    with pytest.raises(ConfigurationError, match="no app has a projection 'state_document'"):
        Holdfast("memory:", projections=["state_document"])


def test_a_function_that_waits_is_refused():
    """It would be a dead letter for every event."""

    async def later(event):
        return None

    for declare in (Pipeline("p").publishes, Pipeline("p").documents):
        with pytest.raises(
            DefinitionError, match=r"projection 'p\.later': its function is a plain"
        ):
            declare(later)
    with pytest.raises(DefinitionError, match="its function is a plain `def`"):
        MessageProjection(name="none", function=None)


@pytest.mark.parametrize("events", ["run.completed", ["run.completed"], {"run.completed"}])
def test_events_are_one_type_or_several(events):
    projection = MessageProjection(name="done", function=lambda event: None, events=events)
    assert projection.events == {"run.completed"}


def test_what_is_returned_has_to_be_a_message(lab, bus):
    pipeline = jobs()
    pipeline.publishes(name="odd", events=["run.queued"])(lambda event: [{"topic": "x"}])
    engine = lab(pipeline, bus=bus)
    engine.submit(pipeline, {"kind": "a"})
    engine.advance(5.0)
    [letter] = engine.call(engine.store.dead_letters())
    assert letter.reason.startswith("DefinitionError: projection 'odd' returned a dict")
