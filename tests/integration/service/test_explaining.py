"""`app.explain(run)`: one test for each cause, on every store."""

import msgspec
import pytest

from holdfast import Lane, Pipeline
from holdfast.engine.lease_losses import note
from holdfast.engine.registry import PREFIX, WorkerInfo
from holdfast.errors import NotFound
from holdfast.model.commands import Acquire, Claim, SaveProgress, Settle, Sweep
from holdfast.model.lease_losses import Blocked
from holdfast.model.run import ErrorInfo, Progress, StepRecord, StepStatus
from holdfast.model.tenant import Quotas

ERROR = msgspec.json.encode(ErrorInfo("ValueError", "no such row", "load")).decode()


def job(**options):
    pipeline = Pipeline("job", input=int, **options)

    @pipeline.step
    async def only(input: int) -> int:
        return input

    return pipeline


class Harness:
    """Workers by their records, claims and settlements by hand."""

    def __init__(self, app, pipeline):
        self.app = app
        self.pipeline = pipeline

    async def worker(self, name="w1", pipelines=("job",), concurrency=4, version="0.1.0"):
        info = WorkerInfo(name, "host", 7, version, list(pipelines), concurrency, 0, 30.0)
        value = msgspec.json.encode(info).decode()
        await self.app.runtime.records.put(PREFIX + name, value, ttl=3600.0)

    async def submit(self, number=1, tenant="acme", **options):
        return await self.app.submit(self.pipeline, number, tenant=tenant, **options)

    async def claim(self, limit=1, worker="w1", token=None, term=0):
        lane = self.pipeline.lane.name
        [claimed] = await self.app.store.apply(
            [Claim(worker, lane, ["job"], limit, 30.0, token=token, term=term)]
        )
        return claimed

    async def lead(self, worker="w1", token="t"):
        lock = f"lane:{self.pipeline.lane.name}"
        [acquired] = await self.app.store.apply([Acquire(lock, token, worker, 30.0)])
        return {"token": token, "term": acquired.epoch}

    async def busy(self, name="w1", slots=4):
        """A worker that executes as many runs of somebody as it can."""
        await self.worker(name, concurrency=slots)
        for number in range(slots):
            await self.submit(number, tenant="busy")
        assert len(await self.claim(slots, name)) == slots

    async def settle(self, claimed, outcome, **options):
        await self.app.store.apply([Settle(claimed.run, claimed.epoch, outcome, **options)])

    async def explain(self, run, cause, *words, **options):
        answer = await self.app.explain(run, **options)
        assert answer.cause == cause, answer
        for word in words:
            assert word in answer.sentence, answer.sentence
        msgspec.json.encode(answer)  # it is what the API answers
        return answer


@pytest.fixture
def explain_in(run_story):
    def explain_in(story, pipeline=None):
        pipeline = pipeline or job()
        run_story(lambda app: story(Harness(app, pipeline)), pipeline)

    return explain_in


def fifo(head="block"):
    return job(lane=Lane("line", order="fifo", head=head))


def test_no_worker(explain_in, clock):
    async def story(harness):
        run = await harness.submit()
        clock.advance(12)
        answer = await harness.explain(run, "no_worker", "No worker is alive;", "12.0 s")
        assert answer.remedy == "`holdfast worker` starts one"
        await harness.worker("gone")
        clock.advance(90)
        await harness.explain(run, "no_worker", "gone", "1 min 30 s ago")

    explain_in(story)


def test_no_worker_serves_the_pipeline(explain_in):
    async def story(harness):
        run = await harness.submit()
        await harness.worker("w1", ["other", "report"], version="0.0.9")
        await harness.worker("w2", ["other"])
        answer = await harness.explain(
            run, "no_worker_serves", "2 workers are alive", "pipeline job", "other, report"
        )
        assert answer.facts["versions"] == ["0.0.9", "0.1.0"]

    explain_in(story)


def test_delay_and_backoff(explain_in, clock):
    async def story(harness):
        await harness.worker()
        run = await harness.submit(delay=60)
        await harness.explain(run, "delayed", "can be claimed in 1 min")
        clock.advance(61)
        await harness.settle((await harness.claim())[0], "retry", delay=20, error=ERROR)
        answer = await harness.explain(
            run, "backoff", "Attempt 1 of 5 failed with ValueError: no such row", "in 20.0 s"
        )
        assert answer.facts["until"].timestamp() == clock.now() + 20
        clock.advance(21)
        deferred = {"delay": 20, "error": ERROR, "deferred": True}  # an attempt that does not count
        await harness.settle((await harness.claim())[0], "retry", **deferred)
        await harness.explain(run, "backoff", "Attempt 2 of 5 failed with ValueError")

    explain_in(story)


def test_limit_of_the_tenant(explain_in, clock):
    async def story(harness):
        await harness.app.tenants.create("acme", Quotas(running=2), actor="ann")
        await harness.worker()
        for number in range(5):
            last = await harness.submit(number)
        assert len(await harness.claim(10)) == 2
        answer = await harness.explain(
            last, "tenant_limit", "Tenant acme has 2 of 2 running runs", "2 runs of tenant acme"
        )
        assert answer.facts == {
            "attempt": 0,
            "attempt_limit": 5,
            "tenant": "acme",
            "running": 2,
            "limit": 2,
            "ahead": 2,
        }

    explain_in(story)


def test_workers_are_busy(explain_in, clock):
    async def story(harness):
        await harness.busy("w1")
        await harness.busy("w2")
        await harness.submit(1, tenant="other")
        await harness.submit(5, delay=60)
        await harness.submit(2)
        run = await harness.submit(3, priority=-1)
        await harness.submit(4)
        answer = await harness.explain(
            run, "workers_busy", "All 2 workers that serve", "8 of 8 slots", "2 runs of tenant acme"
        )
        assert answer.facts["workers"] == ["w1", "w2"]

    explain_in(story)


def test_nothing_keeps_it(explain_in, clock):
    async def story(harness):
        await harness.worker()
        run = await harness.submit()
        await harness.explain(run, "next", "1 worker can claim it", "0 runs of tenant acme come")
        await harness.claim()
        clock.advance(31)
        await harness.app.store.apply([Sweep()])
        clock.advance(2)
        await harness.worker("w2")
        await harness.explain(run, "next", "Its worker was lost 2.0 s ago")

    explain_in(story)


def test_place_in_a_fifo_lane_and_what_runs_there(explain_in, clock):
    async def story(harness):
        await harness.worker()
        first, second, third = [await harness.submit(number) for number in range(3)]
        await harness.explain(first, "no_leader", "Lane line has no leader now")
        lead = await harness.lead()
        await harness.explain(
            third, "lane_position", "number 3 in lane line", f"run {first.id} is at"
        )
        await harness.claim(**lead)
        clock.advance(7)
        await harness.explain(
            second,
            "lane_busy",
            f"run {first.id} has been running for 7.0 s on worker w1",
            "last beat",
        )
        answer = await harness.explain(
            third, "lane_position", "number 2", f"run {first.id} is running"
        )
        assert answer.facts["head"] == second.id

    explain_in(story, fifo())


@pytest.mark.parametrize("lane", ["default", Lane("line", order="fifo")], ids=["parallel", "fifo"])
def test_its_place_among_many_whether_they_came_before_or_after(explain_in, clock, lane):
    async def story(harness):
        await (harness.worker() if harness.pipeline.lane.order == "fifo" else harness.busy())
        inputs = list(range(1200))
        before = await harness.app.submit_many(harness.pipeline, inputs, tenant="acme")
        run = await harness.submit(1)
        await harness.app.submit_many(harness.pipeline, inputs, tenant="acme")
        many = ("lane_position", "number 1,000 or more", f"run {before[0].id} is at its head")
        busy = ("workers_busy", "1,000 or more runs of tenant acme come before this one")
        await harness.explain(run, *(many if harness.pipeline.lane.order == "fifo" else busy))
        few = ("lane_position", "number 3 in lane line", f"run {before[0].id} is at its head")
        first = ("workers_busy", "2 runs of tenant acme come before this one")
        await harness.explain(before[2], *(few if harness.pipeline.lane.order == "fifo" else first))

    explain_in(story, job(lane=lane))


def test_another_tenant_in_the_lane_has_no_name(explain_in, clock):
    async def story(harness):
        await harness.worker()
        lead = await harness.lead()
        foreign = await harness.submit(1, tenant="other")
        run = await harness.submit(2)
        claimed = (await harness.claim(**lead))[0]
        answer = await harness.explain(
            run.id, "lane_busy", "a run of another tenant", tenant="acme"
        )
        assert foreign.id not in msgspec.json.encode(answer).decode()
        await harness.settle(claimed, "failed", error=ERROR)
        answer = await harness.explain(
            run.id, "lane_blocked", "a run of another tenant", tenant="acme"
        )
        assert foreign.id not in msgspec.json.encode(answer).decode()
        with pytest.raises(NotFound):
            await harness.app.explain(foreign.id, tenant="acme")

    explain_in(story, fifo())


def test_a_failed_run_blocks_its_lane(explain_in, clock):
    async def story(harness):
        await harness.worker()
        lead = await harness.lead()
        first, second = [await harness.submit(number) for number in range(2)]
        await harness.settle((await harness.claim(**lead))[0], "failed", error=ERROR)
        clock.advance(120)
        answer = await harness.explain(
            second, "lane_blocked", f"run {first.id}, which failed at its head"
        )
        assert answer.remedy.startswith(f"`holdfast runs resume {first.id}`")
        answer = await harness.explain(
            first, "failed", "2 min ago", "load: ValueError: no such row", "Lane line waits"
        )
        assert answer.facts["dead_letter"] == f"run:{first.id}"

    explain_in(story, fifo())


def test_a_leader_that_is_lost_or_lacks_the_pipeline(explain_in, clock):
    async def story(harness):
        await harness.worker("w1")
        await harness.worker("old", ["other"])
        run = await harness.submit()
        await harness.lead("old")
        answer = await harness.explain(run, "leader_lacks_pipeline", "Worker old leads lane line")
        assert "step-down line" in answer.remedy
        await harness.app.store.apply([Acquire("lane:line", "t", "old", 100.0)])
        clock.advance(40)
        await harness.worker("w2")
        await harness.explain(
            run, "leader_lost", "Worker old leads", "not been heard of for 40.0 s"
        )

    explain_in(story, fifo())


def test_a_running_run_with_its_step_and_the_last_beat(explain_in, clock):
    async def story(harness):
        await harness.worker()
        run = await harness.submit()
        [claimed] = await harness.claim()
        record = StepRecord("only", StepStatus.IN_PROGRESS, started=clock.now(), done=3, total=9)
        progress = msgspec.json.encode(Progress({"only": record})).decode()
        await harness.app.store.apply([SaveProgress(run.id, claimed.epoch, progress)])
        clock.advance(5)
        answer = await harness.explain(
            run, "running", "in step only for 5.0 s, 3 of 9 done on worker w1", "5.0 s ago"
        )
        assert answer.remedy is None
        clock.advance(40)
        await harness.explain(run, "worker_lost", "not been heard of for 45.0 s", "attempt 1 of 5")

    explain_in(story)


def test_an_interpreter_that_was_blocked(explain_in, clock):
    async def story(harness):
        run = await harness.submit()
        for _ in range(5):
            await harness.claim()
            await note(harness.app.runtime.records, run.id, Blocked(33.0, "parse"))
            clock.advance(31)
            if (await harness.app.store.run(run.id)).attempts < 5:
                await harness.app.store.apply([Sweep()])
                await harness.explain(
                    run, "no_worker", "lost its lease", "blocked for 33.0 s in step parse"
                )
        await harness.app.store.apply([Sweep()])
        answer = await harness.explain(
            run, "interpreter_blocked", "5 of 5", "its attempts are used up"
        )
        assert "resume" in answer.remedy

    explain_in(story)


def test_paused_by_a_person_or_by_a_step(explain_in, clock):
    async def story(harness):
        run = await harness.submit()
        await harness.app.operations.pause(run.id, actor="ann", reason="budget")
        clock.advance(300)
        answer = await harness.explain(run, "paused", "paused by ann 5 min ago: budget")
        assert answer.facts["actor"] == "ann"
        await harness.app.operations.resume(run.id)
        [claimed] = await harness.claim()
        await harness.settle(claimed, "paused", reason="$0.5 of the budget of $0.50 is spent")
        await harness.explain(run, "paused", "by one of its steps", "$0.5 of the budget")

    explain_in(story)


def test_failed_cancelled_and_succeeded(explain_in, clock):
    async def story(harness):
        failed, cancelled, succeeded = [await harness.submit(number) for number in range(3)]
        await harness.app.operations.cancel(cancelled.id, actor="bob", reason="not needed")
        for claimed in await harness.claim(2):
            outcome = {"error": ERROR} if claimed.run == failed.id else {"result": "1"}
            name = "failed" if claimed.run == failed.id else "succeeded"
            await harness.settle(claimed, name, **outcome)
        await harness.explain(failed, "failed", "trying again can't help", "ValueError")
        await harness.explain(cancelled, "cancelled", "by bob", "not needed")
        await harness.explain(succeeded, "succeeded")
        with pytest.raises(NotFound):
            await harness.app.explain("nothing")

    explain_in(story)
