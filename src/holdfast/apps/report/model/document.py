"""The finished report, as `report.json` holds it: everything a reader, a page or a spreadsheet can
want.

`SCHEMA` changes when a field changes its meaning or goes; new fields do not change it. Everything
but `made` is the same for the same input and options when the analyst is local."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.apps.report.model.comment import Comment, Row, Source
from holdfast.apps.report.model.crux import Crux, level
from holdfast.apps.report.model.opinion import Opinions
from holdfast.apps.report.model.remark import Remark
from holdfast.apps.report.model.stance import VoteTally
from holdfast.apps.report.model.summary import Sentence

SCHEMA = "holdfast.report/1"


@dataclass(frozen=True, slots=True)
class Quote:
    """Somebody's own words. `start` and `end` are characters of the comment as given."""

    id: str
    claim: str
    """The id of the extracted claim, before merging."""
    comment: str
    row: int
    speaker: str
    start: int
    end: int
    text: str
    statement: str
    """What this quote alone was taken to say; often the same as the claim it was merged into."""


@dataclass(frozen=True, slots=True)
class VoteCount:
    agrees: int
    disagrees: int
    passes: int
    controversy: float


@dataclass(frozen=True, slots=True)
class ReportClaim:
    """A claim of the report: merged from one or more extracted claims, each with its quote."""

    id: str
    number: int
    """Counted through the whole report, in the order in which claims are shown: what citations
    print."""
    statement: str
    people: int
    quotes: tuple[Quote, ...]
    votes: VoteCount | None = None
    """Votes on the comment that says just this, if there were any."""


@dataclass(frozen=True, slots=True)
class ReportSubtopic:
    id: str
    name: str
    description: str
    people: int
    claims: tuple[ReportClaim, ...]


@dataclass(frozen=True, slots=True)
class ReportTopic:
    id: str
    name: str
    description: str
    people: int
    claims: int
    comments: int
    summary: tuple[Sentence, ...]
    subtopics: tuple[ReportSubtopic, ...]
    controversy: float | None = None
    """Mean controversy of its cruxes, if it has any."""
    question: str = ""
    """What its comments answer, where people were asked several questions."""

    @property
    def shown_description(self) -> str:
        """The description, unless the summary says the same: once is enough."""
        described = self.description.rstrip(" .。…")
        is_said = any(described in sentence.text for sentence in self.summary)
        return "" if is_said else self.description


@dataclass(frozen=True, slots=True)
class ReportCrux:
    """A crux, with the scores written out. `basis` is votes, claims or tension."""

    id: str
    topic: str
    subtopic: str
    statement: str
    explanation: str
    basis: str
    agree: int
    disagree: int
    unclear: int
    agreeing: tuple[str, ...]
    disagreeing: tuple[str, ...]
    undecided: tuple[str, ...]
    agreement: float
    disagreement: float
    controversy: float
    level: str
    cites: tuple[str, ...]
    groups: tuple[VoteTally, ...] = ()
    """How each opinion group voted, in the order of `opinions.groups`."""
    gap: float = 0.0
    """The widest difference between two groups' shares of agreement."""

    @classmethod
    def of(cls, crux: Crux) -> ReportCrux:
        people = crux.people or 1
        score = round(crux.controversy, 4)
        return cls(
            crux.id,
            crux.topic,
            crux.subtopic,
            crux.statement,
            crux.explanation,
            str(crux.basis),
            crux.agree,
            crux.disagree,
            crux.unclear,
            crux.agreeing,
            crux.disagreeing,
            crux.undecided,
            round(crux.agree / people, 4),
            round(crux.disagree / people, 4),
            score,
            level(score),
            crux.cites,
            crux.groups,
            crux.gap,
        )


@dataclass(frozen=True, slots=True)
class Matrix:
    """Who stands where. Cells: agree, disagree, unclear, or empty."""

    speakers: tuple[str, ...] = ()
    cruxes: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    rows: int
    comments: int
    """Rows that were analysed."""
    people: int
    claims: int
    """Claims of the report, after merging."""
    extracted: int
    """Claims before merging; each has one quote."""
    quotes: int
    topics: int
    subtopics: int
    voters: int = 0
    """People who voted; 0 where votes were counted without names."""
    votes: int = 0


@dataclass(frozen=True, slots=True)
class LossExample:
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class LossReason:
    reason: str
    count: int
    examples: tuple[LossExample, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the funnel: how many were left, and what was lost on the way to it."""

    name: str
    """rows, comments, speaking (comments with a claim), drafts, extracted, claims."""
    count: int
    lost: tuple[LossReason, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what people said is in the report, as shares of the analysed comments."""

    placed: float
    """In a topic other than "other"."""
    speaking: float
    """With at least one claim."""
    quoted_characters: float
    """Of all characters, how many are inside a quote."""


@dataclass(frozen=True, slots=True)
class Facet:
    """A column readers can filter by, with its most common values (value, rows)."""

    name: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one step took. `cost` is None when the price of a call is unknown."""

    step: str
    seconds: float
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class PromptUsed:
    name: str
    text: str
    customised: bool


@dataclass(frozen=True, slots=True)
class Method:
    """How it was made, in words and figures."""

    analyst: str
    """`local`, or the model: `openai:gpt-4o-mini`."""
    generated: bool
    """Whether names, statements and summaries are a model's words (marked ◆) or taken from the
    comments."""
    votes: bool
    sort: str
    options: dict[str, str]
    prompts: tuple[PromptUsed, ...]
    notes: tuple[str, ...]
    """Limits, in plain words."""
    failed: tuple[tuple[str, str], ...] = ()
    """Comments that could not be analysed: (id, why)."""


@dataclass(frozen=True, slots=True)
class Made:
    """When and at what cost: the part that differs between two runs of the same input."""

    at: str
    software: str
    seconds: float
    steps: tuple[StepCost, ...]
    cost: float | None


@dataclass(frozen=True, slots=True)
class Report:
    schema: str
    id: str
    """Derived from the input and the options: the same for the same question."""
    title: str
    question: str
    description: str
    language: str
    counts: Counts
    coverage: Coverage
    findings: tuple[Sentence, ...]
    topics: tuple[ReportTopic, ...]
    """Ordered; the topic `other` is last, if it has comments."""
    cruxes: tuple[ReportCrux, ...]
    matrix: Matrix
    facets: tuple[Facet, ...]
    funnel: tuple[Stage, ...]
    comments: tuple[Comment, ...]
    """The analysed comments."""
    left_out: tuple[Row, ...]
    """All rows that were not analysed, with the reason. With very many, the first ones; `counts` is
    complete."""
    map: tuple[tuple[str, float, float], ...]
    source: Source
    method: Method
    made: Made
    warnings: tuple[str, ...] = field(default=())
    opinions: Opinions = field(default_factory=Opinions)
    """What people voted for, and the groups that voted alike."""
    reviewer: str = ""
    """The second model that reviewed names and findings."""
    remarks: tuple[Remark, ...] = ()
    """Where it disagrees: what a person should read."""
