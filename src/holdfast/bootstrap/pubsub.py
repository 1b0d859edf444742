"""What the settings say about Pub/Sub: which project is the bus, what is received without a
`[[receive]]`, and which topics and subscriptions there have to be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from typing import Any

from msgspec.structs import replace

from holdfast.bootstrap.adapters import adapter_for
from holdfast.engine.unmatched import GROUP as UNMATCHED
from holdfast.errors import ConfigurationError
from holdfast.model.receive import MEGABYTE, Receive
from holdfast.model.topology import SubscriptionPlan, Topology
from holdfast.ports.health import Finding, bytes_of, make_finding
from holdfast.settings import Loaded, Settings, redacted

JOBS_ACK_DEADLINE = 300
"""Seconds, of subscriptions whose messages become runs; that of all others is 60."""
JOB_PROJECTIONS = ("job_results", "job_dead_letters", "job_log")
"""What a job worker tells others."""
JOB_BYTES = 10 * MEGABYTE
STAGES = {
    "metadata": "NOT attributes:worker-type",
    "transcription": 'attributes.worker-type = "transcription"',
}
"""The stages of a transcription, and which messages of the work topic each of them wants."""


def bus_url(loaded: Loaded) -> str:
    """The bus: as `bus` says or, without it, Pub/Sub of the project that is named. A project of the
    command line comes before that of the URL."""
    bus, project = loaded.settings.bus, loaded.settings.pubsub.project
    if project is None:
        return bus
    if loaded.is_default("bus"):
        return f"pubsub://{project}"
    if bus.startswith("pubsub:") and loaded.origins["pubsub.project"] == "command line":
        _, question_mark, parameters = bus.partition("?")
        return f"pubsub://{project}{question_mark}{parameters}"
    return bus


# --- what is received -----------------------------------------------------------------------------


def receives(
    loaded: Loaded, pipelines: Collection[str], *, is_job_worker: bool = False
) -> tuple[Receive, ...]:
    """What a worker that serves these pipelines receives: what `receive` says, otherwise the topics
    that are set under `pubsub`. A job worker receives its topic without being asked."""
    settings = loaded.settings
    if settings.receive:
        return settings.receive
    if settings.pubsub.work_topic is not None:
        return tuple(_stages(settings, [name for name in STAGES if name in pipelines]))
    if says_nothing(loaded):
        return (_jobs(settings, pipelines, JOB_BYTES),) if is_job_worker else ()
    return (_jobs(settings, pipelines),)


def received_by_all(loaded: Loaded) -> tuple[Receive, ...]:
    """What the workers of a deployment receive together, whichever pipelines each of them has."""
    pipelines = ["jobs"] if loaded.settings.pubsub.work_topic is None else list(STAGES)
    return receives(loaded, pipelines, is_job_worker=bus_url(loaded).startswith("pubsub:"))


def says_nothing(loaded: Loaded) -> bool:
    """Whether nobody has said what is received."""
    names = ("receive", "pubsub.work_topic", "pubsub.topic", "pubsub.subscription")
    return all(loaded.is_default(name) for name in names)


def _jobs(settings: Settings, pipelines: Collection[str], max_bytes: int | None = None) -> Receive:
    topic = settings.pubsub.topic
    # The stages of a transcription have a topic of their own, and come with every worker.
    pipelines = [name for name in pipelines if name not in STAGES] or pipelines
    if len(pipelines) != 1:
        names = ", ".join(sorted(pipelines)) or "none"
        raise ConfigurationError(
            f"topic {topic} can't be received: it belongs to the only pipeline of a worker, and "
            f"here are {names}; write --receive {topic}=PIPELINE"
        )
    [pipeline] = pipelines
    receive = Receive(topic, pipeline, settings.pubsub.topic_subscription)
    if max_bytes is None:
        return receive
    return Receive(topic, pipeline, receive.subscription, max_bytes=max_bytes)


def _stages(settings: Settings, names: Iterable[str]) -> Iterable[Receive]:
    pubsub = settings.pubsub
    for name in names:
        subscription = getattr(pubsub, f"{name}_subscription")
        yield Receive(pubsub.work_topic or "", name, subscription, STAGES[name])


def flow_findings(loaded: Loaded) -> Iterable[Finding]:
    """Whether what is taken in fits to what is executed."""
    settings = loaded.settings
    for receive in received_by_all(loaded):
        taken = f"{receive.max_messages} messages, {bytes_of(receive.max_bytes)}"
        executed = f"{settings.concurrency} runs, {bytes_of(settings.max_bytes)}"
        too_many = receive.max_messages > settings.concurrency
        yield make_finding(
            f"flow {receive.topic}",
            f"at once {taken} are taken in, {executed} executed",
            warn=too_many or receive.max_bytes > settings.max_bytes,
            why="a worker takes in faster than it executes: messages that others could take wait "
            "here",
            fix=f"set concurrency to at least {receive.max_messages} and max_bytes to at least "
            f"{bytes_of(receive.max_bytes)}, or lower those of the [[receive]]",
        )


# --- what has to be there -------------------------------------------------------------------------


def set_up(loaded: Loaded, *, change: bool) -> AsyncIterator[Any]:
    """Check all that has to be there; with `change`, put it right. Raises ConfigurationError if the
    bus is not Pub/Sub."""
    url = bus_url(loaded)
    if not url.startswith("pubsub:"):
        raise ConfigurationError(
            f"the bus is {redacted(url)}, not Pub/Sub: give --project NAME, or set "
            "PUBSUB_PROJECT_ID"
        )
    adapter = adapter_for(url, "bus", "bus")
    assert adapter.setup is not None
    return adapter.make(adapter.setup, url, topology=topology(loaded), change=change)


def topology(loaded: Loaded) -> Topology:
    """Topics and subscriptions as the settings want them; with nothing set, those of the job
    worker."""
    settings = loaded.settings
    if says_nothing(loaded) and loaded.is_default("projections"):
        settings = replace(settings, projections=JOB_PROJECTIONS)
    receives = received_by_all(loaded)
    received = [_received(receive, settings) for receive in receives]
    received += [_unmatched(receive, settings) for receive in _with_filters(receives)]
    read_by_others = [
        SubscriptionPlan(name=f"{topic}-sub", topic=topic)
        for topic in _published_topics(settings, receives)
    ]
    plans = {plan.name: plan for plan in (*received, *read_by_others)}
    dead = [plan.dead_letter_topic for plan in received if plan.dead_letter_topic]
    topics = dict.fromkeys([*(plan.topic for plan in plans.values()), *dead])
    return Topology(tuple(dict.fromkeys([*topics, settings.events.topic])), tuple(plans.values()))


def _received(receive: Receive, settings: Settings) -> SubscriptionPlan:
    plan = SubscriptionPlan(
        name=receive.group,
        topic=receive.topic,
        ack_deadline=JOBS_ACK_DEADLINE,
        filter=receive.where.text,
        dead_letter_topic=receive.dead_letter_topic or settings.jobs.dead_letter_topic,
    )
    return _pushed(plan, receive, settings)


def _pushed(plan: SubscriptionPlan, receive: Receive, settings: Settings) -> SubscriptionPlan:
    """With the endpoint that its messages are pushed to, if there is one."""
    push = settings.push
    endpoint = receive.push_endpoint or push.endpoint
    if endpoint is None:
        return plan
    accounts = [account for account in push.service_account if account != "none"]
    return replace(
        plan,
        push_endpoint=endpoint,
        push_audience=(push.audience or endpoint) if accounts else "",
        push_service_account=accounts[0] if accounts else "",
    )


def _with_filters(receives: Iterable[Receive]) -> list[Receive]:
    """One for each topic whose unwanted messages are buried."""
    filtered = [r for r in receives if r.filter and r.unmatched == "bury"]
    return list({receive.topic: receive for receive in filtered}.values())


def _unmatched(receive: Receive, settings: Settings) -> SubscriptionPlan:
    plan = SubscriptionPlan(name=f"{UNMATCHED}{receive.topic}", topic=receive.topic)
    return _pushed(plan, receive, settings)


def _published_topics(settings: Settings, received: Iterable[Receive]) -> list[str]:
    """Topics that others read, each with a subscription for them."""
    jobs, projections = settings.jobs, settings.projections
    is_stages = settings.pubsub.work_topic is not None
    topics = [jobs.results_topic] if "job_results" in projections else []
    topics += [jobs.events_topic] if "job_events" in projections or is_stages else []
    return [*topics, *(r.dead_letter_topic or jobs.dead_letter_topic for r in received)]
