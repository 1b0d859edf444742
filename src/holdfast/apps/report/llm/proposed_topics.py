"""Topics: what a model proposes becomes a taxonomy whose names, ids and limits are ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from holdfast.apps.report.llm.answers import SubtopicAnswer, TopicAnswer
from holdfast.apps.report.llm.injection import looks_like_injection
from holdfast.apps.report.llm.questions import compact_json
from holdfast.apps.report.llm.text_cleaning import truncate, truncate_words
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.taxonomy import Subtopic, Topic
from holdfast.model.tokens import estimate_tokens

NAME = 60
TOPIC_WORDS = 50
SUBTOPIC_WORDS = 90
"""A model is asked for 25 to 35 and for up to 70 words; a few more are no reason to cut a sentence
in two."""
MOST_TOPICS = 24
MOST_SUBTOPICS = 12
SAMPLE_TOKENS = 10_000
MOST_SAMPLES = 8
EXCERPT = 1_500
"""Characters of a long comment that are enough to see what it is about."""


# --- samples --------------------------------------------------------------------------------------


def sample_batches(texts: Iterable[str]) -> list[list[str]]:
    """Different texts in batches that fit a call each, all of them if they fit into a few calls.

    Which ones, and in which batch, depends on nothing but their content. Texts that look as if they
    wanted to steer the model have no say in what the topics are, unless there are no others."""
    different = sorted(set(texts), key=fingerprint)
    chosen, size = _fitting(text for text in different if not looks_like_injection(text))
    if not chosen:
        chosen, size = _fitting(different)
    batches = -(-size // SAMPLE_TOKENS)
    return [chosen[batch::batches] for batch in range(batches)]


def _fitting(texts: Iterable[str]) -> tuple[list[str], int]:
    """As many excerpts as all samples together hold, and their size. No text is looked at that is
    not needed."""
    chosen: list[str] = []
    size = 0
    for text in texts:
        tokens = estimate_tokens(text[:EXCERPT]) + 4
        if size + tokens > SAMPLE_TOKENS * MOST_SAMPLES:
            break
        chosen.append(text[:EXCERPT])
        size += tokens
    return chosen, size


def fingerprint(text: str) -> str:
    """Eight bytes that stand for a text, as hex."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# --- instructions ---------------------------------------------------------------------------------


def topic_instructions(brief: Brief) -> str:
    """What was asked for about the topics, in words for the model."""
    number = (
        f"exactly {brief.topics} topics"
        if brief.topics
        else "as many topics as the comments need, usually 4 to 12"
    )
    lines = [f"Propose {number}."]
    if brief.given:
        wanted = [
            {"name": topic.name, "description": topic.description, "subtopics": topic.subtopics}
            for topic in brief.given
        ]
        lines.append(
            "These topics are wanted, come first and keep exactly these names; they count. Propose "
            "others only for "
            f"comments that fit none of them:\n<wanted>\n{compact_json(wanted)}\n</wanted>"
        )
    return "\n".join(lines)


# --- from proposals to topics ---------------------------------------------------------------------


def make_taxonomy(proposed: Sequence[TopicAnswer], brief: Brief) -> tuple[Topic, ...]:
    """Topics with ids of ours: those that were given, then those proposed, each name once, as many
    as wanted."""
    answers = _merged([*map(_as_answer, brief.given), *proposed])
    most = max(brief.topics or MOST_TOPICS, len(brief.given))
    return tuple(_topic(f"t{number}", answer) for number, answer in enumerate(answers[:most], 1))


def extend_taxonomy(
    topics: Sequence[Topic], proposed: Sequence[TopicAnswer], brief: Brief
) -> tuple[Topic, ...]:
    """The topics there are, which stay as they are, and what is proposed beside them."""
    extended = list(topics)
    most = max(brief.topics or MOST_TOPICS, len(extended))
    for answer in _merged(proposed):
        existing = next(
            (index for index, topic in enumerate(extended) if _same(topic.name, answer.name)), None
        )
        if existing is not None:
            extended[existing] = _with_more(extended[existing], answer)
        elif len(extended) < most:
            extended.append(_topic(f"t{len(extended) + 1}", answer))
    return tuple(extended)


def shorten_proposal(proposed: Sequence[TopicAnswer], weight: int) -> dict[str, Any]:
    """A proposal as it is given to the model that merges: descriptions shortened, that is enough to
    compare."""
    topics = [
        {
            "name": truncate(topic.name, NAME),
            "description": truncate_words(topic.description, 30),
            "subtopics": [
                {
                    "name": truncate(subtopic.name, NAME),
                    "description": truncate_words(subtopic.description, 30),
                }
                for subtopic in topic.subtopics[:MOST_SUBTOPICS]
            ],
        }
        for topic in proposed[:MOST_TOPICS]
    ]
    return {"weight": weight, "topics": topics}


def _as_answer(topic: Any) -> TopicAnswer:
    subtopics = [SubtopicAnswer(name=name, description="") for name in topic.subtopics]
    return TopicAnswer.model_construct(
        name=topic.name, description=topic.description, subtopics=subtopics
    )


def _merged(answers: Iterable[TopicAnswer]) -> list[TopicAnswer]:
    """Topics of the same name become one; those without a name are nothing."""
    merged: dict[str, TopicAnswer] = {}
    for answer in answers:
        name = truncate(answer.name, NAME)
        if not any(map(str.isalnum, name)):
            continue
        before = merged.get(name.casefold())
        merged[name.casefold()] = TopicAnswer.model_construct(
            name=before.name if before else name,
            description=(before.description if before else "") or answer.description,
            subtopics=[*(before.subtopics if before else ()), *answer.subtopics],
        )
    return list(merged.values())


def _topic(id_: str, answer: TopicAnswer) -> Topic:
    topic = Topic(
        id_, truncate(answer.name, NAME), truncate_words(answer.description, TOPIC_WORDS), ()
    )
    topic = _with_more(topic, answer)
    if topic.subtopics:
        return topic
    return replace(topic, subtopics=(Subtopic(f"{id_}.1", topic.name, topic.description),))


def _with_more(topic: Topic, answer: TopicAnswer) -> Topic:
    """The topic with the subtopics that it does not have yet."""
    subtopics = {subtopic.name.casefold(): subtopic for subtopic in topic.subtopics}
    for subtopic in answer.subtopics:
        name = truncate(subtopic.name, NAME)
        if (
            any(map(str.isalnum, name))
            and name.casefold() not in subtopics
            and len(subtopics) < MOST_SUBTOPICS
        ):
            id_ = f"{topic.id}.{len(subtopics) + 1}"
            subtopics[name.casefold()] = Subtopic(
                id_, name, truncate_words(subtopic.description, SUBTOPIC_WORDS)
            )
    return replace(topic, subtopics=tuple(subtopics.values()))


def _same(name: str, other: str) -> bool:
    return truncate(name, NAME).casefold() == truncate(other, NAME).casefold()
