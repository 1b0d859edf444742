"""The key that came with a job's message: used for that job, and told to nobody."""

from __future__ import annotations

import pytest
from tests.unit.llm.harness import KEY, FakeContext, Harness, over_loopback

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.client import ModelClient
from holdfast.errors import ConfigurationError, Pause


class JobContext(FakeContext):
    """The context of a run whose message brought a key."""

    def __init__(self, own: str | None, *, is_known: bool = True) -> None:
        super().__init__()
        self.own = own
        self.known = is_known

    async def secret(self, *names: str, configured: str | None = None) -> str | None:
        assert names
        if self.known and self.own:
            return self.own
        if configured is not None:
            return configured
        if self.own:
            raise Pause("needs the key that came with its message")
        return None


def without_configured_key(harness: Harness) -> ModelClient:
    return ModelClient(parse(harness.fake.address("openai")), environment={})


def test_the_jobs_own_key_is_used_where_none_is_configured():
    async def story(harness):
        harness.model, harness.ctx = without_configured_key(harness), JobContext(KEY)
        assert await harness.ask()

    over_loopback(story)


def test_the_jobs_own_key_comes_before_the_configured_one():
    async def story(harness):
        harness.ctx = JobContext("sk-wrong-key-of-the-job")
        with pytest.raises(ConfigurationError) as error:
            await harness.ask()
        assert "sk-wrong" not in str(error.value)
        assert "the key of its message" in str(error.value)

    over_loopback(story)


def test_another_process_uses_its_configured_key():
    async def story(harness):
        harness.ctx = JobContext("sk-only-elsewhere", is_known=False)
        assert await harness.ask()

    over_loopback(story)


def test_without_a_configured_key_the_run_pauses_or_the_setting_is_named():
    async def story(harness):
        harness.model = without_configured_key(harness)
        harness.ctx = JobContext("sk-only-elsewhere", is_known=False)
        with pytest.raises(Pause, match="came with its message"):
            await harness.ask()
        harness.ctx = JobContext(None)
        with pytest.raises(ConfigurationError, match="needs a key"):
            await harness.ask()

    over_loopback(story)
