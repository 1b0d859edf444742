"""Promotion: everything from one store to another, whatever crashes on the way, and the work goes
on there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from tests import postgres_server
from tests.redis_server import fresh_prefix, shared_server

from holdfast import Context, Holdfast, Lane, Pause, Pipeline
from holdfast.bootstrap import make_mover, make_store
from holdfast.cli.main import main
from holdfast.errors import ConfigurationError, Conflict, NotFound
from holdfast.model.clock import SystemClock
from holdfast.ports.mover import KINDS, Mover
from holdfast.ports.store import RunFilter
from holdfast.services import inventory
from holdfast.services.inventory import BlobCheck, records
from holdfast.services.promotion import Different, NamedMover, Promotion
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.mover_topics.sample_data import fill
from holdfast.testing.contracts.store_topics.harness import StoreHarness
from holdfast.testing.invariants import check_store

_numbers = count(1)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / f'{next(_numbers)}.db'}"


def postgres_url(folder: Path) -> str:
    return postgres_server.shared_server().url(postgres_server.fresh_schema())


def redis_url(folder: Path) -> str:
    return shared_server().url(prefix=fresh_prefix())


Url = Callable[[Path], str]
everywhere = pytest.mark.parametrize("url", [sqlite_url, postgres_url, redis_url])
servers = pytest.mark.parametrize("url", [postgres_url, redis_url])


def promotion(source: Mover, target: Mover, names: tuple[str, str] = ("old", "new")) -> Promotion:
    named_movers = NamedMover(source, names[0]), NamedMover(target, names[1])
    return Promotion(*named_movers, SystemClock(), lambda *_: None, BlobCheck(None))


def between(source: str, target: str) -> Promotion:
    return promotion(
        *[make_mover(url, SystemClock()) for url in (source, target)], names=(source, target)
    )


async def contents(url: str) -> dict[str, list[str]]:
    """All that is in a store, as text, but for how long delays still take and who promoted it."""
    mover = make_mover(url, SystemClock())
    await mover.open()
    try:
        exported = {kind: [record async for record in records(mover, kind)] for kind in KINDS}
    finally:
        await mover.close()
    for record in exported["runs"]:
        record.wait = 0.0
    exported["audit"] = [entry for entry in exported["audit"] if entry.action != "store.promote"]
    return {kind: sorted(map(str, exported[kind])) for kind in KINDS}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with something of every kind in it."""
    path = tmp_path_factory.mktemp("template") / "holdfast.db"

    async def make() -> None:
        from holdfast.adapters.sqlite.store import SqliteStore

        # A day ago, however long this host is up: nobody is alive, and no boot has ended the delays
        # since.
        clock = ManualClock(monotonic=SystemClock().monotonic() - 86_400.0)
        store = SqliteStore(path, clock)
        await store.open()
        await fill(StoreHarness(store, clock, lambda _: store))
        await store.close()

    asyncio.run(make())
    return path


@pytest.fixture
def source(template: Path, tmp_path: Path) -> str:
    url = sqlite_url(tmp_path)
    shutil.copy(template, url.removeprefix("sqlite:///"))
    return url


@pytest.fixture
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "PAGE", 7)


# --- from anywhere to anywhere --------------------------------------------------------------------


def test_everything_survives_a_journey_through_all_stores(source: str, tmp_path: Path) -> None:
    urls = [
        source,
        *[url(tmp_path) for url in (redis_url, postgres_url, sqlite_url, redis_url, sqlite_url)],
    ]
    for here, there in pairwise(urls):
        asyncio.run(between(here, there).move("ann", force=True))
    assert asyncio.run(contents(urls[-1])) == asyncio.run(contents(source))


def test_work_goes_on_at_every_stop_of_a_journey(tmp_path: Path) -> None:
    """Runs are accepted, alone and together, executed and found again, whatever came before them
    and wherever."""
    steps = Pipeline("steps", input=int)
    steps.step(name="one")(lambda input: input + 1)
    steps.step(name="two")(lambda one: 2 * one)

    async def stay(url: str, first: int) -> None:
        async with Holdfast(url, [steps], blobs=f"file:{tmp_path / 'files'}") as app:
            handles = [
                await app.submit(steps, first),
                *await app.submit_many(steps, range(first + 1, first + 9)),
            ]
            handles.append(await app.submit(steps, first + 9, key=f"k{first + 9}"))
            assert [await handle.result(30) for handle in handles] == [
                2 * (first + n + 1) for n in range(10)
            ]
            runs = await app.store.runs(RunFilter(), limit=1000)
            assert [run.input for run in reversed(runs)] == [
                str(number) for number in range(first + 10)
            ]
            assert await check_store(app.store) == []
            keyed = [
                await app.submit(steps, number, key=f"k{number}")
                for number in range(9, first + 10, 10)
            ]
            assert not any(handle.created for handle in keyed)

    kinds = (
        sqlite_url,
        redis_url,
        redis_url,
        postgres_url,
        redis_url,
        sqlite_url,
        postgres_url,
        sqlite_url,
    )
    urls = [url(tmp_path) for url in kinds]
    asyncio.run(stay(urls[0], 0))
    for stop, (here, there) in enumerate(pairwise(urls), 1):
        asyncio.run(between(here, there).move("ann", force=True))
        asyncio.run(stay(there, 10 * stop))


@everywhere
def test_a_dry_run_counts_everything_and_changes_nothing(
    source: str, url: Url, tmp_path: Path
) -> None:
    target = url(tmp_path)
    before = asyncio.run(contents(source))
    plan = asyncio.run(between(source, target).plan())
    assert (plan.target, plan.obstacles) == ("new", [])
    assert (
        sum(plan.inventory.states.values())
        == plan.inventory.amounts["runs"].count
        == len(before["runs"])
    )
    assert plan.inventory.keys == 2
    assert plan.inventory.values == 1
    assert asyncio.run(contents(source)) == before
    assert asyncio.run(make_mover(target, SystemClock()).exists()) is False
    asyncio.run(between(source, target).move("ann"))


# --- what stands in the way -----------------------------------------------------------------------


@everywhere
def test_a_target_that_is_in_use_is_refused(source: str, url: Url, tmp_path: Path) -> None:
    target = url(tmp_path)
    other = Path(sqlite_url(tmp_path).removeprefix("sqlite:///"))
    shutil.copy(source.removeprefix("sqlite:///"), other)
    asyncio.run(between(f"sqlite:///{other}", target).move("ann"))
    with pytest.raises(Conflict, match="has 20 runs already"):
        asyncio.run(between(source, target).move("ann"))
    assert can_be_opened(source)


def test_a_store_can_be_moved_once(source: str, tmp_path: Path) -> None:
    target, third = sqlite_url(tmp_path), sqlite_url(tmp_path)
    asyncio.run(between(source, target).move("ann"))
    for other in (target, third):
        with pytest.raises(Conflict, match=f"were moved to {target}"):
            asyncio.run(between(source, other).move("ann"))
    assert not Path(third.removeprefix("sqlite:///")).exists()


def test_a_store_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    missing = sqlite_url(tmp_path)
    with pytest.raises(NotFound, match="no store at"):
        asyncio.run(between(missing, sqlite_url(tmp_path)).move("ann"))
    assert not Path(missing.removeprefix("sqlite:///")).exists()


@everywhere
def test_a_store_is_not_moved_into_itself(url: Url, tmp_path: Path) -> None:
    here = url(tmp_path)
    asyncio.run(create(here))
    same = promotion(*[make_mover(here, SystemClock()) for _ in range(2)], names=("one", "other"))
    with pytest.raises(ConfigurationError, match="are the same store"):
        asyncio.run(same.move("ann"))
    assert can_be_opened(here)


async def create(url: str) -> None:
    store = make_store(url, SystemClock())
    await store.open()
    await store.close()


def can_be_opened(url: str) -> bool:
    try:
        asyncio.run(create(url))
    except ConfigurationError:
        return False
    return True


def test_what_was_changed_on_the_way_is_found(source: str, tmp_path: Path) -> None:
    old, new = [make_mover(url, SystemClock()) for url in (source, sqlite_url(tmp_path))]

    class Careless:
        """Loses a log line."""

        def __getattr__(self, name: str) -> Any:
            return getattr(new, name)

        async def adopt(self, kind: Any, records: Any) -> None:
            for record in records if kind == "runs" else ():
                record.logs = record.logs[1:]
            await new.adopt(kind, records)

    with pytest.raises(Different, match=r"log lines \(2 and 1\); 1 runs differ: done"):
        asyncio.run(promotion(old, Careless()).move("ann"))  # type: ignore[arg-type]
    asyncio.run(promotion(old, new).undo())
    assert can_be_opened(source)


# --- dying on the way -----------------------------------------------------------------------------


class Died(Exception):
    pass


class Mortal:
    """A mover whose process dies after its nth change."""

    changes = 0

    def __init__(self, mover: Mover, lifetime: int) -> None:
        self._mover = mover
        self._lifetime = lifetime

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._mover, name)
        return self._changing(act) if name in ("hold", "release", "adopt", "continue_from") else act

    def _changing(self, act: Any) -> Any:
        async def changing(*arguments: Any) -> None:
            await act(*arguments)
            Mortal.changes += 1
            if Mortal.changes == self._lifetime:
                raise Died

        return changing


@everywhere
@pytest.mark.usefixtures("_small_pages")
def test_whatever_it_dies_on_it_goes_on_there(template: Path, url: Url, tmp_path: Path) -> None:
    expected: dict[str, list[str]] | None = None
    for lifetime in count(1):
        source, target = sqlite_url(tmp_path), url(tmp_path)
        shutil.copy(template, source.removeprefix("sqlite:///"))
        Mortal.changes = 0
        movers = [
            Mortal(make_mover(location, SystemClock()), lifetime) for location in (source, target)
        ]
        try:
            asyncio.run(promotion(*movers, names=(source, target)).move("ann"))  # type: ignore[arg-type]
        except Died:
            assert not (can_be_opened(source) and can_be_opened(target))
            with suppress(Conflict):  # when it had just been completed
                asyncio.run(between(source, target).move("ann"))
        assert not can_be_opened(source)
        assert can_be_opened(target)
        arrived = asyncio.run(contents(target))
        expected = expected or arrived
        assert arrived == expected
        if lifetime > Mortal.changes:
            break
    assert lifetime > 14


@pytest.mark.usefixtures("_small_pages")
def test_an_interrupted_promotion_can_be_taken_back(source: str, tmp_path: Path) -> None:
    before = asyncio.run(contents(source))
    target = sqlite_url(tmp_path)
    Mortal.changes = 0
    movers = [Mortal(make_mover(location, SystemClock()), 9) for location in (source, target)]
    with pytest.raises(Died):
        asyncio.run(promotion(*movers, names=(source, target)).move("ann"))  # type: ignore[arg-type]
    asyncio.run(between(source, target).undo())
    assert can_be_opened(source)
    assert not can_be_opened(target)
    assert asyncio.run(contents(source)) == before
    with pytest.raises(Conflict, match="half filled"):
        asyncio.run(between(source, target).move("ann"))
    asyncio.run(between(source, sqlite_url(tmp_path)).move("ann"))


@everywhere
def test_a_promotion_is_taken_back_unless_work_went_on(
    source: str, url: Url, tmp_path: Path
) -> None:
    target = url(tmp_path)
    asyncio.run(between(source, target).move("ann"))
    asyncio.run(between(source, target).undo())
    assert can_be_opened(source)
    assert not can_be_opened(target)
    with pytest.raises(Conflict, match="nothing to take back"):
        asyncio.run(between(source, target).undo())


@servers
def test_a_promotion_whose_target_went_on_is_taken_back_by_force_only(
    source: str, url: Url, tmp_path: Path
) -> None:
    target = url(tmp_path)
    asyncio.run(between(source, target).move("ann"))

    async def work() -> None:
        async with Holdfast(target, [Pipeline("idle")], worker=False) as app:
            await app.operations.cancel("queued-0")

    asyncio.run(work())
    with pytest.raises(Conflict, match="has gone on since then"):
        asyncio.run(between(source, target).undo())
    assert not can_be_opened(source)
    asyncio.run(between(source, target).undo(force=True))
    assert can_be_opened(source)
    assert not can_be_opened(target)


KILLED = """
import os, signal, sys
from holdfast.services import inventory
from holdfast.adapters.{package}.mover import {name}
from holdfast.cli.main import main

inventory.PAGE = 5
adopt = {name}.adopt
calls = 0

async def adopt_and_die(self, kind, records):
    global calls
    await adopt(self, kind, records)
    calls += kind == "runs"
    if calls == 2:
        os.kill(os.getpid(), signal.SIGKILL)

{name}.adopt = adopt_and_die
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("url", "package", "name"),
    [(postgres_url, "postgres", "PostgresMover"), (redis_url, "redis", "RedisMover")],
)
def test_a_killed_command_goes_on_when_it_is_started_again(
    source: str,
    url: Url,
    package: str,
    name: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    target = url(tmp_path)
    script = KILLED.format(package=package, name=name)
    process = subprocess.run(
        [sys.executable, "-c", script, "promote", source, target], cwd=tmp_path, timeout=60
    )
    assert process.returncode == -signal.SIGKILL
    assert not can_be_opened(source)
    assert not can_be_opened(target)
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["promote", source, target])
    assert ended.value.code == 0
    output = capfd.readouterr()
    assert "20 of 20 runs moved" in output.err
    assert "the same on both sides" in output.out
    assert can_be_opened(target)


# --- the command ----------------------------------------------------------------------------------


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's own settings is heard."""
    for name in [
        name for name in os.environ if name.startswith("HOLDFAST_") or name == "DATABASE_URL"
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_alone")
def test_the_command_tells_what_there_is_and_what_to_set(
    source: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = redis_url(tmp_path)
    assert command("promote", source, target, "--dry-run", "--json") == 0
    planned = json.loads(capfd.readouterr().out)
    assert (planned["moved"], planned["target_is"], planned["obstacles"]) == (False, "new", [])
    assert command("promote", source, target, "--json") == 0
    plan = json.loads(capfd.readouterr().out)
    assert (plan["moved"], plan["keys"], sum(plan["runs"].values())) == (True, 2, 20)
    digests = [
        {kind["kind"]: kind["digest"] for kind in entry["kinds"]} for entry in (planned, plan)
    ]
    assert digests[0] == digests[1]
    folder = source.removeprefix("sqlite:///").removesuffix(".db") + "-files"
    assert plan["blobs"] == {
        "values": 1,
        "missing": 1,
        "place": f"file:{folder}",
        "set": f"file:{folder}",
    }
    assert command("promote", source, target) == 6
    assert f"were moved to {target}" in capfd.readouterr().err
    assert command("runs", "list", "--store", source) == 2
    assert command("promote", source, target, "--undo") == 0
    assert command("runs", "list", "--store", source) == 0


@pytest.mark.usefixtures("_alone")
def test_the_target_may_come_from_the_settings_and_no_password_is_shown(
    source: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", "postgresql://ann:secret@127.0.0.1:1/app")
    assert command("promote", source) == 1
    output = capfd.readouterr()
    assert "127.0.0.1:1/app can't be reached" in output.err
    assert "secret" not in output.err + output.out
    assert can_be_opened(source)


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("memory:", "sqlite:///new.db"), 2, "nothing to move"),
        (("sqlite:///new.db", "sqlite:///new.db"), 2, "given twice"),
        (("sqlite:///missing.db", "sqlite:///new.db"), 7, "no store at"),
        (("sqlite:///missing.db", "oracle://new"), 2, "known are"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...],
    code: int,
    message: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert command("promote", *words) == code
    assert message in capfd.readouterr().err
    assert not list(tmp_path.glob("*.db"))


# --- the work goes on -----------------------------------------------------------------------------


LARGE = "x" * 40_000


class NotedPipelines:
    """A pipeline that notes what it executes."""

    def __init__(self) -> None:
        self.executed: list[str] = []
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()
        self.repaired = False
        self.pipeline = Pipeline("desk", lane=Lane("line", "fifo", "block"))
        self.wide = Pipeline("wide")

        @self.pipeline.step
        async def first(input: Any) -> str:
            self.executed.append(f"first {input}")
            return LARGE

        @self.pipeline.step
        async def second(input: Any, first: str) -> str:
            self.executed.append(f"second {input}")
            if input == "budget" and not self.repaired:
                raise Pause("over budget")
            return f"{input} {len(first)}"

        @self.wide.step
        async def one(input: Any) -> int:
            self.executed.append("one")
            return 1

        @self.wide.step
        async def two(one: int, ctx: Context) -> int:
            self.executed.append("two")
            self.waiting.set()
            await self.gate.wait()
            return one + 1

    def app(self, url: str, folder: Path, *, worker: bool = True) -> Holdfast:
        return Holdfast(
            url, [self.pipeline, self.wide], blobs=f"file:{folder / 'files'}", worker=worker
        )


@servers
def test_paused_and_queued_runs_go_on_with_their_checkpoints(url: Url, tmp_path: Path) -> None:
    async def story() -> None:
        old, new = sqlite_url(tmp_path), url(tmp_path)
        before, after = NotedPipelines(), NotedPipelines()
        async with before.app(old, tmp_path) as app:
            paused = await app.submit(before.pipeline, "budget")
            while (await app.operations.find(paused.id)).state != "paused":
                await app.store.wait(0, 0.1)
        async with before.app(old, tmp_path, worker=False) as app:
            queued = [await app.submit(before.pipeline, name, key=name) for name in ("a", "b", "c")]

        await between(old, new).move("ann")

        after.repaired = True
        async with after.app(new, tmp_path) as app:
            results = [await (await app.run(run.id)).result() for run in queued]
            await app.operations.resume(paused.id)
            assert await (await app.run(paused.id)).result() == "budget 40000"
            assert (await app.submit(after.pipeline, "a", key="a")).id == queued[0].id
            results.append(await (await app.submit(after.pipeline, "d", key="d")).result())
        assert results == ["a 40000", "b 40000", "c 40000", "d 40000"]
        assert before.executed == ["first budget", "second budget"]
        executions = ["second budget", "first d", "second d"]
        assert (
            after.executed
            == [f"{step} {run}" for run in "abc" for step in ("first", "second")] + executions
        )

    asyncio.run(story())


@servers
def test_a_live_worker_loses_its_run_and_writes_nothing_more(url: Url, tmp_path: Path) -> None:
    async def story() -> None:
        old, new = sqlite_url(tmp_path), url(tmp_path)
        before, after = NotedPipelines(), NotedPipelines()
        app = before.app(old, tmp_path)
        await app.open()
        run = await app.submit(before.wide, None)
        await before.waiting.wait()
        with pytest.raises(Conflict, match=f"workers are alive on .*: run {run.id} "):
            await between(old, new).move("ann")
        await between(old, new).move("ann", force=True)

        after.gate.set()
        async with after.app(new, tmp_path) as there:
            assert await (await there.run(run.id)).result() == 2
            history = await there.store.history(run.id)
            before.gate.set()
            await app.close(grace=0)
            assert await there.store.history(run.id) == history
            assert [event.type for event in history].count("run.worker_lost") == 1
        assert before.executed == ["one", "two"]
        assert after.executed == ["two"]

    asyncio.run(story())
