"""The local analyst as an `Analyst`: its name, its limits in words, and the same answers every
time."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.local.helpers import Analysis, Progress, analyse, comments
from tests.unit.report.local.test_topics import TOWN

from holdfast.apps.report.local.analyst import LocalAnalyst
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimDraft
from holdfast.apps.report.model.crux import Basis
from holdfast.apps.report.model.taxonomy import Placement

CONTEXT: Any = Progress()


def told(analysis: Analysis) -> str:
    return repr(
        (
            analysis.clustering,
            analysis.claims,
            analysis.groups,
            analysis.summaries,
            analysis.findings,
            analysis.cruxes,
        )
    )


def test_the_same_comments_give_the_same_answers():
    assert told(analyse(TOWN)) == told(analyse(TOWN))


def test_another_process_with_another_hash_seed_gives_the_same_answers():
    code = (
        "from tests.unit.report.local.test_analyst import told; from "
        "tests.unit.report.local.test_topics import TOWN;"
        "from tests.unit.report.local.helpers import analyse; print(told(analyse(TOWN)))"
    )
    root = Path(__file__).parents[4]
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_calls_that_overlap_give_the_same_answers_as_one_by_one():
    async def both() -> tuple[str, str]:
        analyst = LocalAnalyst()
        first, second = await asyncio.gather(
            *(analyst.cluster(TOWN, Brief(), CONTEXT) for _ in range(2))
        )
        return repr(first), repr(second)

    left, two = asyncio.run(both())
    assert left == two == repr(analyse(TOWN).clustering)


def test_it_is_local_and_says_only_what_people_said():
    analyst = LocalAnalyst()
    assert (analyst.name, analyst.generates) == ("local", False)
    assert analyst.prompts(Brief()) == []


@pytest.mark.parametrize(("language", "count"), [("en", 3), ("de", 4), ("zh-TW", 4), ("xx", 4)])
@pytest.mark.parametrize("basis", [Basis.VOTES, Basis.TENSION])
def test_its_limits_are_told_in_plain_words(language, count, basis):
    notes = LocalAnalyst().notes(language, {basis})
    assert len(notes) == count
    assert all(len(note) > 20 for note in notes)


def test_words_are_not_blamed_for_what_people_voted():
    (about_words,) = set(LocalAnalyst().notes("en", {Basis.TENSION})) - set(
        LocalAnalyst().notes("en", {Basis.VOTES})
    )
    assert "words alone" in about_words


def test_a_quote_is_cut_from_the_comment_and_the_statement_is_tidied():
    (comment,) = comments("Well, I think that the bus is late.  And the tram?")
    placement = Placement(comment.id, "t1.1", 0, 35)
    drafts = asyncio.run(LocalAnalyst().extract(comment, [placement], (), Brief(), CONTEXT))
    assert drafts == [
        ClaimDraft("The bus is late.", "Well, I think that the bus is late.", "t1.1", 0)
    ]


def test_there_is_nothing_to_ask_again():
    (comment,) = comments("The bus is late.")
    draft = ClaimDraft("The bus is late.", "The tram is late.", "t1.1")
    assert asyncio.run(LocalAnalyst().requote(comment, draft, Brief(), CONTEXT)) == ""


def test_the_loop_stays_free_while_it_thinks():
    async def ticks() -> int:
        task = asyncio.create_task(LocalAnalyst().cluster(TOWN * 20, Brief(), CONTEXT))
        count = 0
        while not task.done():
            await asyncio.sleep(0)
            count += 1
        return count

    assert asyncio.run(ticks()) > 50
