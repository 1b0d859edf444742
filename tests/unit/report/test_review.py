"""Topics go out as a file, and what people make of them comes back."""

from __future__ import annotations

import json

import pytest

from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic
from holdfast.apps.report.request import ReviewedTopic
from holdfast.apps.report.review import apply_review, from_file, to_file
from holdfast.errors import InvalidInput

BUSES = Topic("t1", "Buses", "", (Subtopic("t1.1", "Fares"), Subtopic("t1.2", "Night")))
PARKS = Topic("t2", "Parks", "", (Subtopic("t2.1", "Trees"),))
CLUSTERING = Clustering(
    (BUSES, PARKS),
    (
        Placement("a", "t1.1", 0, 5),
        Placement("b", "t1.2", 0, 5),
        Placement("b", "t1.1", 0, 5),
        Placement("c", "t2.1", 0, 5),
    ),
)


def edited(change) -> Clustering:
    document = json.loads(to_file(CLUSTERING))
    change(document["topics"])
    topics = from_file(json.dumps(document).encode(), "topics.json")
    return apply_review(CLUSTERING, [ReviewedTopic.model_validate(topic) for topic in topics], "en")


def places(clustering: Clustering) -> list[tuple[str, str]]:
    return sorted((placement.comment, placement.subtopic) for placement in clustering.placements)


def test_what_nobody_edits_stays_as_it_is():
    same = edited(lambda topics: None)
    assert (same.topics, places(same)) == (CLUSTERING.topics, places(CLUSTERING))
    assert "2 topics became 2, 2 of them under the same name" in same.notes[-1]


def test_subtopics_are_renamed_moved_and_merged():
    def change(topics):
        topics[1]["name"] = "Town"
        topics[1]["subtopics"] += topics.pop(0)["subtopics"]
        night = topics[0]["subtopics"].pop()
        topics[0]["subtopics"][1]["ids"] += night["ids"]
        topics[0]["subtopics"][1]["name"] = "Buses"

    (town,) = edited(change).topics
    assert town.name == "Town"
    assert [part.name for part in town.subtopics] == ["Trees", "Buses"]
    assert places(edited(change)) == [("a", "t1.2"), ("b", "t1.2"), ("c", "t1.1")]


def test_what_is_left_out_goes_to_other():
    assert ("c", OTHER) in places(edited(lambda topics: topics.pop()))


@pytest.mark.parametrize("ids", [["t9.9"], ["t2.1", "t1.1"]])
def test_an_id_that_is_not_there_or_twice_is_an_error(ids):
    with pytest.raises(InvalidInput, match=r"topics\.json lists the id 't"):
        edited(lambda topics: topics[1]["subtopics"][0].update(ids=ids))


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"topics": []}'])
def test_a_file_that_is_no_longer_one_says_so(data):
    with pytest.raises(InvalidInput, match="begin the review again"):
        from_file(data, "topics.json")
