"""Reads a file of comments: every row once, in order, with what becomes of it and why.

The file is passed over once for its digest and encoding and once for its rows, and a further time
when it may hold more comments than one report takes. Nothing is held but a few bytes for each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain

from holdfast.apps.report.model.comment import Comment, Fate, Row, Source
from holdfast.apps.report.reading.columns import Columns, find_columns, has_comments
from holdfast.apps.report.reading.encoding import is_guess
from holdfast.apps.report.reading.hash_set import HashSet
from holdfast.apps.report.reading.language import LanguageSample
from holdfast.apps.report.reading.masking import masked
from holdfast.apps.report.reading.notes import Note, Notes
from holdfast.apps.report.reading.opening import open_table
from holdfast.apps.report.reading.rows import Ids, comment_of, is_moderated_out, speaker_of
from holdfast.apps.report.reading.sampling import largest_kept
from holdfast.apps.report.reading.screening import Screen, Verdict
from holdfast.apps.report.reading.survey import FileSurvey, survey
from holdfast.apps.report.reading.table import Table, UnreadableRow
from holdfast.errors import InvalidInput

BEGINNING = 120
"""Characters of a comment that are shown where it was left out."""


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How to read. `columns` says which column has a role (comment, id, speaker, …) where its name
    does not."""

    columns: dict[str, str] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    """Columns that each hold the answers to one question: a comment for each answer."""
    mask: bool = False
    """Mask personal data in the text of comments."""
    max_characters: int = 10_000
    """Longer comments are left out."""
    max_comments: int = 100_000
    """Of more comments, this many are taken, by the hash of their content."""
    keep_moderated: bool = False


class CommentReader:
    """The comments of one file. It can be iterated over again, with the same result.

    Warnings, language, people and fates are those of the last iteration, complete when it is.
    """

    def __init__(
        self, open: Callable[[], Iterable[bytes]], filename: str, options: ReadingOptions
    ) -> None:
        """`open` gives the file's bytes in chunks, from the start, every time it is called."""
        self._open = open
        self._filename = filename
        self._options = options
        self._last: _Pass | None = None

    def __iter__(self) -> Iterator[tuple[Row, Comment | None]]:
        self._last = reading = _Pass(self._columns, self._options, self._largest)
        for number, cells in enumerate(self._table.rows(reading.notes), 1):
            yield from reading.read(number, cells)

    @cached_property
    def source(self) -> Source:
        return Source(
            filename=self._filename,
            sha256=self._survey.sha256,
            bytes=self._survey.bytes,
            format=self._table.format,
            encoding=self._table.encoding,
            separator=self._table.separator,
            columns=self._columns.names,
            facets=tuple(name for _, name in self._columns.facets),
        )

    @property
    def warnings(self) -> list[str]:
        return self._about_file() + (self._last.notes.warnings() if self._last else [])

    @property
    def language(self) -> str:
        return self._last.sample.language if self._last else "und"

    @property
    def people(self) -> int:
        """How many different people made the comments that were kept."""
        return self._last.people.count if self._last else 0

    @property
    def fates(self) -> dict[str, int]:
        """How many rows had each fate."""
        if self._last is None:
            return {}
        counts = {**self._last.left_out, Fate.KEPT: self._last.kept}
        return {fate.value: counts[fate] for fate in Fate if counts.get(fate)}

    @cached_property
    def _survey(self) -> FileSurvey:
        return survey(self._open())

    @cached_property
    def _table(self) -> Table:
        is_table = partial(
            has_comments, overrides=self._options.columns, questions=self._options.questions
        )
        return open_table(self._open, self._shown_name, self._survey, is_table)

    @cached_property
    def _columns(self) -> Columns:
        return find_columns(
            self._table.columns,
            self._options.columns,
            self._shown_name,
            self._table.separator,
            self._options.questions,
        )

    @cached_property
    def _largest(self) -> int | None:
        """The largest weight that is kept, None where all are: found by judging all rows once
        without keeping them."""
        answers = max(1, len(self._columns.questions))
        if answers * self._table.bound <= self._options.max_comments:
            return None
        trial = _Pass(self._columns, self._options, None)
        weights = chain.from_iterable(map(trial.weights, self._table.rows(trial.notes)))
        return largest_kept(weights, self._options.max_comments)

    def _about_file(self) -> list[str]:
        encoding, surplus = self._table.encoding, self._columns.surplus
        guess = (
            f"The encoding was guessed: {encoding}. If letters look wrong, save the file as UTF-8."
        )
        return [guess] * is_guess(encoding) + [_left_out(surplus)] * bool(surplus)

    @property
    def _shown_name(self) -> str:
        return "The input" if self._filename in ("", "-") else self._filename


def check_not_empty(reader: CommentReader, filename: str) -> None:
    """Raise InvalidInput if no row can be analysed, with what became of the rows there are. Reads
    no further than the first comment that can."""
    if any(comment is not None for _, comment in reader):
        return
    raise InvalidInput(nothing_in(filename, reader.fates))


def nothing_in(filename: str, fates: Mapping[str, int]) -> str:
    rows = sum(fates.values())
    if not rows:
        return f"{filename} has a header and no rows: there is nothing to report on."
    kinds = ", ".join(f"{count:,} {fate}" for fate, count in fates.items())
    return (
        f"{filename} has {rows:,} rows and no comment that can be analysed ({kinds}): a comment "
        "needs words. Is it the right column? --column comment=NAME says which one it is."
    )


class _Pass:
    """One pass over the rows, and all that is counted on the way."""

    def __init__(self, columns: Columns, options: ReadingOptions, largest: int | None) -> None:
        self._columns = columns
        self._by_question = columns.by_question()
        self._options = options
        self._largest = largest
        reason = (
            f"there are more than {options.max_comments:,} comments; which ones are taken is "
            "drawn by lot"
        )
        self._over_limit = Verdict(Fate.OVER_LIMIT, reason)
        self.notes = Notes()
        self._screen = Screen(options.max_characters, self.notes)
        self._heeds_moderators = columns.moderated is not None and not options.keep_moderated
        self._ids = Ids(columns, self.notes)
        self.people = HashSet()
        self.kept = 0
        self.left_out: Counter[Fate] = Counter()
        self.sample = LanguageSample()

    def weights(self, cells: list[str] | UnreadableRow) -> Iterator[int]:
        """What decides whether comments of a row are taken when there are too many; nothing for
        those that are left out anyway."""
        cells = self._fitted(cells)
        if isinstance(cells, UnreadableRow):
            return
        for columns in self._by_question:
            verdict = self._judge(cells, speaker_of(cells, columns), columns)
            if verdict.fate is Fate.KEPT:
                yield verdict.weight

    def read(
        self, number: int, cells: list[str] | UnreadableRow
    ) -> Iterator[tuple[Row, Comment | None]]:
        """What becomes of a row: one comment, or one for each question."""
        cells = self._fitted(cells)
        if isinstance(cells, UnreadableRow):
            broken = Verdict(Fate.BROKEN, cells.reason)
            yield self._left_out(number, self._ids.of(None, number), broken, cells.text), None
            return
        id = self._ids.of(cells, number)
        for columns in self._by_question:
            own = f"{id}-q{columns.question}" if columns.question else id
            yield self._comment(number, own, cells, columns)

    def _comment(
        self, number: int, id: str, cells: list[str], columns: Columns
    ) -> tuple[Row, Comment | None]:
        text = cells[columns.comment]
        if "\ufffd" in text:
            self.notes[Note.UNREADABLE] += 1
        speaker = speaker_of(cells, columns)
        verdict = self._limited(self._judge(cells, speaker, columns))
        if verdict.fate is not Fate.KEPT:
            return self._left_out(number, id, verdict, text), None
        self._count_kept(text, speaker or f"Anonymous #{number}")
        shown = masked(text) if self._options.mask else text
        return Row(number, id, Fate.KEPT), comment_of(id, number, shown, speaker, cells, columns)

    def _fitted(self, cells: list[str] | UnreadableRow) -> list[str] | UnreadableRow:
        if isinstance(cells, UnreadableRow) or len(cells) == self._columns.width:
            return cells
        return self._columns.fit(cells, self.notes)

    def _judge(self, cells: list[str], speaker: str, columns: Columns) -> Verdict:
        """The same words in answer to another question are no repetition."""
        moderated = self._heeds_moderators and is_moderated_out(cells, columns)
        whose = f"{columns.asked}\x1f{speaker}" if speaker and columns.question else speaker
        return self._screen.judge(cells[columns.comment], whose, moderated)

    def _limited(self, verdict: Verdict) -> Verdict:
        if (
            self._largest is None
            or verdict.fate is not Fate.KEPT
            or verdict.weight <= self._largest
        ):
            return verdict
        return self._over_limit

    def _count_kept(self, text: str, speaker: str) -> None:
        self.kept += 1
        self.sample.add(text)
        self.people.add(hash(speaker))

    def _left_out(self, number: int, id: str, verdict: Verdict, text: str) -> Row:
        self.left_out[verdict.fate] += 1
        beginning = text[: 4 * BEGINNING]
        shown = masked(beginning) if self._options.mask else beginning
        return Row(number, id, verdict.fate, verdict.reason, shown[:BEGINNING])


def _left_out(columns: tuple[str, ...]) -> str:
    shown = ", ".join(columns[:5]) + (" …" if len(columns) > 5 else "")
    return (
        f"Only the first 30 further columns are kept to filter by; left out: {shown} "
        f"({len(columns):,} in all)."
    )
