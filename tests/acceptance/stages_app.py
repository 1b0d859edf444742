"""Two stages that share a work topic."""

import os
from typing import Any

from holdfast import CommittedEvent, Outgoing, Pipeline

metadata = Pipeline("metadata", input=dict, key=lambda job: f"{job['id']}:1")
transcription = Pipeline("transcription", input=dict, key=lambda job: job["id"])


@metadata.step
async def enrich(request: dict[str, Any]) -> dict[str, Any]:
    return {**request, "metadata": {"title": "A talk"}}


@metadata.publishes(events=["run.completed"], name="hand_over")
def hand_over(event: CommittedEvent) -> Outgoing:
    topic = os.environ["PUBSUB_TOPIC_WORK"]
    return Outgoing(topic, event.result, {"worker-type": "transcription"}, event.subject)


@transcription.step
async def transcribe(request: dict[str, Any]) -> str:
    return f"transcript of {request['metadata']['title']}"
