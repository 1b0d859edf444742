"""`holdfast transcribe`: both stages here, on the store of the settings, files into a folder."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import click
from msgspec import Struct

from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.exits import ExitCode, RunEnded
from holdfast.cli.session import Session, actor, wait_for
from holdfast.model.run import RunState

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.apps.transcription.model.job import TranscriptionJob
    from holdfast.cli.signals import StopSignal
    from holdfast.engine.handle import RunHandle
    from holdfast.model.pipeline import Pipeline


class TranscribeOutput(Struct):
    """What `transcribe --json` prints for each recording."""

    recording: str
    run: str
    transcript: str
    folder: str
    files: list[str]
    duration: float
    words: int
    transcriber: str


@click.command(
    cls=CliCommand,
    local="recordings are transcribed here; POST /jobs of a service takes their addresses",
)
@click.argument("recordings", nargs=-1, required=True, metavar="FILE|URL…")
@click.option(
    "-o",
    "--output",
    default=".",
    metavar="DIR",
    help="Where the files go; several recordings get a folder each in it. Default: this folder.",
)
@click.option(
    "--transcriber",
    default="",
    metavar="NAME",
    help="moonshine (offline, English), gemini, openai, or google:MODEL, openai:MODEL. Default: as "
    "transcription.transcriber says.",
)
@click.option(
    "--language", metavar="CODE", help="What is spoken: en, de-CH. Default: as the file says."
)
@click.option("--fresh", is_flag=True, help="Transcribe it again.")
@click.option("--tenant", metavar="NAME", help="The tenant of the transcript.")
@session_of
def command(
    session: Session,
    recordings: tuple[str, ...],
    output: str,
    transcriber: str,
    language: str | None,
    fresh: bool,
    tenant: str | None,
) -> int:
    """Transcribe recordings: transcript.json, .txt, .srt, .vtt, and a page that plays the recording
    and follows the words.

    Works offline, without a key, for English. If it is interrupted or killed, the same command goes
    on where it was, without repeating finished work.

    \b
    Examples:
      holdfast transcribe talk.mp3 -o talk
      holdfast transcribe *.mp4 -o transcripts
      holdfast transcribe https://example.org/talk.mp3 --transcriber gemini --language de
    """
    overrides = {"transcriber": transcriber, "language": language}
    tenant = tenant or session.loaded.settings.tenant
    return wait_for(_transcribe(session, recordings, Path(output), tenant, overrides, fresh))


async def _transcribe(
    session: Session,
    recordings: tuple[str, ...],
    folder: Path,
    tenant: str,
    overrides: dict[str, Any],
    fresh: bool,
) -> int:
    from holdfast.cli.logs import set_up
    from holdfast.cli.signals import StopSignal

    loaded = session.loaded
    set_up(loaded.settings.log, level="warning" if loaded.is_default("log.level") else None)
    jobs = {name: _job(name, overrides) for name in recordings}
    app = _app(session)
    async with StopSignal(app) as stop:
        try:
            await app.open()
            paths = folders(jobs, folder)
            for name, job in jobs.items():
                path = paths[name]
                stages = Stages(session, app, stop, tenant, fresh)
                if not await stages.run(name, job, path):
                    session.out.note("\nholdfast: what is done is kept; the same command goes on")
                    return stop.code
        finally:
            await app.close()
    return ExitCode.OK


def folders(recordings: Collection[str], folder: Path) -> dict[str, Path]:
    """Where the files of each go: one has the folder for itself, several get one each in it, called
    as the recording is, with its ending or a number where that is needed to tell them apart."""
    if len(recordings) == 1:
        return dict.fromkeys(recordings, folder)
    stems = Counter(_file_name(name).stem for name in recordings)
    paths: dict[str, Path] = {}
    for name in recordings:
        file = _file_name(name)
        folder_name = file.stem if stems[file.stem] == 1 else file.name
        numbered = (f"{file.stem}-{number}" for number in count(2))
        taken = set(paths.values())
        paths[name] = next(
            p for n in chain([folder_name], numbered) if (p := folder / n) not in taken
        )
    return paths


def _file_name(recording: str) -> Path:
    """What a path or URL ends with, as a name that every file system takes."""
    last = unquote(recording.rstrip("/").rpartition("/")[2])
    return Path(re.sub(r"[^\w.,()+ -]+", "_", last).strip(". ") or "recording")


def _app(session: Session) -> Holdfast:
    """Nothing leaves from here but files: the stages are handed over in this process."""
    from holdfast.app import Holdfast
    from holdfast.apps.transcription import metadata, transcription
    from holdfast.apps.transcription.media.source import MediaSources
    from holdfast.apps.transcription.transcribers import make_sources

    options = session.app_options
    sources = replace_folder(make_sources(lambda port: None))
    options = replace(
        options,
        works=True,
        bus="memory:",
        documents=None,
        projections=(),
        receive=(),
        provide={**options.provide, MediaSources: sources},
    )
    return Holdfast.from_options(options, [metadata, transcription])


def replace_folder(sources: Any) -> Any:
    """Whoever types a command may name any file."""
    from msgspec.structs import replace

    return replace(sources, folder="/")


def _job(name: str, overrides: dict[str, Any]) -> TranscriptionJob:
    """The same recording with the same options is the same job."""
    from hashlib import file_digest, sha256

    from holdfast.apps.transcription.model.job import TranscriptionJob
    from holdfast.errors import InvalidInput

    made_of = [name, str(overrides)]
    media = {"url": name}
    if "://" not in name:
        path = Path(name).resolve()
        if not path.is_file():
            raise InvalidInput(f"there is no file {name}")
        with path.open("rb") as file:
            made_of = [str(path), str(overrides), file_digest(file, "sha256").hexdigest()]
        media = {"path": str(path)}
    id = f"job_{sha256(chr(0).join(made_of).encode()).hexdigest()[:32]}"
    options = {key: value for key, value in overrides.items() if value}
    return TranscriptionJob.model_validate({"id": id, "media": media, **options})


class Stages:
    """Both stages of one recording."""

    def __init__(
        self, session: Session, app: Holdfast, stop: StopSignal, tenant: str, fresh: bool
    ) -> None:
        self._session = session
        self._app = app
        self._stop = stop
        self._tenant = tenant
        self._fresh = fresh

    async def run(self, name: str, job: TranscriptionJob, folder: Path) -> bool:
        """False if somebody stopped the waiting."""
        from holdfast.apps.transcription import metadata, transcription

        first = await self._start(metadata, job)
        enriched = await self._until_over(first, metadata)
        if enriched is None:
            return False
        second = await self._start(transcription, enriched)
        result = await self._until_over(second, transcription)
        if result is None:
            return False
        files = await self._files(result["files"])
        self._write(files, folder, name)
        self._print(name, second, result, folder)
        return True

    async def _start(self, pipeline: Pipeline[Any], job: Any) -> RunHandle:
        """A failed or paused run goes on; a finished one is not made again."""
        from holdfast.model.ids import new_id

        handle = await self._app.submit(pipeline, job, tenant=self._tenant)
        state = (await handle.info()).state
        if state is RunState.CANCELLED or (self._fresh and not handle.created):
            data = job if isinstance(job, dict) else job.model_dump()
            key = f"{data['id']}:{pipeline.name}:{new_id(self._app.runtime.clock.now())}"
            return await self._app.submit(pipeline, job, tenant=self._tenant, key=key)
        if state in (RunState.FAILED, RunState.PAUSED):
            await self._app.operations.resume(handle.id, actor=actor())
        return handle

    async def _until_over(self, handle: RunHandle, pipeline: Pipeline[Any]) -> Any:
        """The result; None if somebody stopped the waiting."""
        import msgspec

        from holdfast.cli.progress import progress_on
        from holdfast.cli.watching import OVER, hand_over, show, watch

        run = await handle.info()
        if run.state not in OVER:
            progress = progress_on(self._session.out)
            showing = show(self._session, self._app, handle, pipeline, progress)
            if not await watch(handle, showing, None, self._stop):
                await hand_over(self._session, self._app)
            run = await handle.info()
        if run.state not in OVER:
            return None
        if run.state is not RunState.SUCCEEDED:
            raise RunEnded.repeatable(run)
        return msgspec.json.decode(await self._app.runtime.payloads.result_of(run))

    async def _files(self, keys: dict[str, str]) -> dict[str, bytes]:
        from holdfast.errors import NotFound

        files: dict[str, bytes] = {}
        for name, key in keys.items():
            data = await self._app.runtime.payloads.get(key)
            if data is None:
                raise NotFound(f"{name} is missing from the blob store; use --fresh")
            files[name] = data
        return files

    def _write(self, files: dict[str, bytes], folder: Path, recording: str) -> None:
        """The page plays the recording where it is."""
        import msgspec

        from holdfast.apps.report.service import write_files
        from holdfast.apps.transcription.outputs.page import render_page

        folder.mkdir(parents=True, exist_ok=True)
        if "://" not in recording:
            document = msgspec.json.decode(files["transcript.json"])
            source = quote(os.path.relpath(recording, folder))
            files = {**files, "transcript.html": render_page(document, source).encode()}
        write_files(files, folder)

    def _print(self, name: str, handle: RunHandle, result: Any, folder: Path) -> None:
        from holdfast.model.duration import humanise

        out = self._session.out
        if not out.for_people:
            files = sorted(result["files"])
            out.json(
                TranscribeOutput(
                    recording=name,
                    run=handle.id,
                    transcript=result["id"],
                    folder=str(folder),
                    files=files,
                    duration=result["duration"],
                    words=result["words"],
                    transcriber=result["transcriber"],
                )
            )
            return
        out.line(
            f"{name}: {humanise(round(result['duration']))}, {result['words']:,} words, by "
            f"{result['transcriber']}"
        )
        out.line(f"{folder / 'transcript.html'}  ({len(result['files']) - 1} more files beside it)")
