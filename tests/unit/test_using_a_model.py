"""`ctx.use(LanguageModel)` in anybody's pipeline: from the settings, lazily, cached, budgeted, and
pruned."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast import Context, Holdfast, LanguageModel, LanguageModels, Pipeline, Question
from holdfast.adapters.llm.answer_cache import AnswerCache
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.services.following import follow
from holdfast.testing import TestEngine
from holdfast.testing.fakellm import FakeLLM, Fixed

PRICES = {"input_price": 100, "output_price": 100}
"""Dollars per million tokens: an answer of full length costs $0.41."""
BRAIN = Fixed(answer={"mood": "glad"})


class Mood(BaseModel):
    mood: str


moods: Pipeline[list[str]] = Pipeline("moods", input=list[str], max_attempts=1)


@moods.step
async def read(request: list[str], ctx: Context) -> list[str]:
    async def one_call(letter: str, ctx: Context) -> str:
        model = ctx.use(LanguageModel)
        answer = await model.ask(Question("How do they feel?", letter), Mood, ctx, budget=0.5)
        return answer.mood

    return await ctx.map(one_call, request)


def run_story(story: Any, **options: Any) -> Any:
    async def whole() -> Any:
        async with FakeLLM(BRAIN) as fake:
            llm = fake.address(in_flight=1, **PRICES)
            async with Holdfast("memory:", [moods], llm=llm, **options) as app:
                return await story(app, fake)

    return asyncio.run(whole())


def test_a_step_asks_the_model_of_the_settings_and_the_same_again_costs_nothing() -> None:
    async def story(app: Holdfast, fake: FakeLLM) -> None:
        first = await app.submit(moods, ["hello", "bye"])
        assert await first.result() == ["glad", "glad"]
        again = await app.submit(moods, ["bye"])
        assert await again.result() == ["glad"]
        assert len(fake.calls) == 2

    run_story(story)


def test_a_run_pauses_before_its_budget_is_passed() -> None:
    async def story(app: Holdfast, fake: FakeLLM) -> Any:
        run = await app.submit(moods, ["x" * 4000])
        info = await run.info()
        async for info in follow(app.store, run.id):
            if info.state == "paused":
                break
        return info, fake.calls

    info, calls = run_story(story)
    assert (info.state, calls) == ("paused", [])
    assert "of the budget of $0.50 is spent" in (info.reason or "")


def test_what_is_given_overrides_the_settings() -> None:
    class Mine:
        async def ask(self, question: Question, answer: type[Any], ctx: Any, **_: Any) -> Any:
            return answer(mood=question.text.upper())

    async def story(app: Holdfast, fake: FakeLLM) -> Any:
        assert await (await app.submit(moods, ["hello"])).result() == ["HELLO"]
        assert fake.calls == []

    run_story(story, provide={LanguageModel: Mine()})


def test_without_a_model_the_run_fails_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_LLM", raising=False)
    engine = TestEngine(moods)
    run = engine.submit(moods, ["hello"])
    engine.drain()
    error = engine.info(run).error
    assert error is not None
    assert "set HOLDFAST_LLM" in error.message
    engine.close()


def test_the_environment_names_the_model_if_the_code_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_LLM", "openai:gpt-4o-mini?base_url=http://localhost:1/v1")
    app = Holdfast("memory:")
    assert app.use(LanguageModel).name == "openai:gpt-4o-mini"
    assert Holdfast("memory:", llm="google:g").use(LanguageModel).name == "google:g"
    assert app.use(LanguageModels).named("anthropic:a").name == "anthropic:a"
    assert app.use(LanguageModels).named("anthropic:a") is app.use(LanguageModels).named(
        "anthropic:a"
    )


def test_an_app_declared_in_code_keeps_what_it_provides_under_the_command_line() -> None:
    own = Holdfast("memory:", provide={LanguageModel: "mine"}, llm="google:g")
    assert Holdfast.from_settings(pipelines=[], like=own).use(LanguageModel) == "mine"


def test_a_pipeline_that_asks_no_model_imports_nothing_of_it() -> None:
    code = (
        "import asyncio, sys\n"
        "from holdfast import Holdfast, Pipeline\n"
        "p = Pipeline('p', input=int)\n"
        "p.step(name='only')(lambda input: 1)\n"
        "async def main():\n"
        "    async with Holdfast('memory:', [p]) as app:\n"
        "        await (await app.submit(p, 1)).result()\n"
        "asyncio.run(main())\n"
        "print([m for m in sys.modules if '.llm' in m or 'apps.' in m or 'language_model' in m])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    imported = process.stdout.strip()
    assert imported == "['holdfast.bootstrap.language_models']"


def test_a_worker_deletes_answers_that_are_older_than_finished_runs() -> None:
    engine = TestEngine(moods)
    blobs: MemoryBlobs = engine._blobs
    cache = AnswerCache(blobs, engine.clock, 30 * 86_400.0)
    engine.call(cache.put("acme", ("question",), "answer"))

    def kept() -> int:
        return len(engine.call(blobs.list("acme/answers/")))

    engine.clock.jump_wall(29 * 86_400.0)
    engine.advance(3700)
    assert kept() == 1
    engine.clock.jump_wall(3 * 86_400.0)
    engine.advance(3700)
    assert kept() == 0
    engine.close()
