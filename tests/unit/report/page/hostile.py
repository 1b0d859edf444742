"""A report in which everything that people could have typed is an attack on the page."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tests.unit.report.page.samples import Writer, bare, subtopic, topic

from holdfast.apps.report.model.comment import Comment, Fate, Row
from holdfast.apps.report.model.crux import controversy, level
from holdfast.apps.report.model.document import (
    Facet,
    LossExample,
    LossReason,
    Matrix,
    PromptUsed,
    Quote,
    Report,
    ReportClaim,
    ReportCrux,
    Stage,
    VoteCount,
)
from holdfast.apps.report.model.summary import Sentence

RUN = "window.hit=(window.hit||0)+1"
_TAGS = [
    "img",
    "svg",
    "iframe",
    "video",
    "audio",
    "body",
    "input",
    "object",
    "embed",
    "details",
    "marquee",
    "math",
]
_EVENTS = [
    "onerror",
    "onload",
    "onclick",
    "onfocus",
    "onmouseover",
    "ontoggle",
    "onanimationstart",
    "onpointerenter",
]

PAYLOADS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"--><script>{RUN}</script><!--",
    f"]]><script>{RUN}</script>",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f"` onmouseover={RUN} x=`",
    f"' onmouseover='{RUN}' x='",
    f'" onmouseover="{RUN}" x="',
    f'" autofocus onfocus="{RUN}',
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<scr<script>ipt>{RUN}</script>",
    f"\ufeff<script>{RUN}</script>",
    f"\x00<script\x00>{RUN}</script>",
    f"<a href='javascript:{RUN}'>x</a>",
    f"<a href='data:text/html,<script>{RUN}</script>'>x</a>",
    f"<style>*{{background:url(javascript:{RUN})}}</style>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example/>",
    "<form action=https://evil.example><button>x</button></form>",
    "<img src=https://evil.example/pixel.gif>",
    "![x](https://evil.example/pixel.gif)",
    "[click](javascript:alert(1))",
    "<plaintext>",
    "<!--",
    "<![CDATA[",
    "<noscript><p title='</noscript><img src=x onerror=window.hit=1>'>",
    "{{ 7 * 7 }} {% for x in y %}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "${7*7} #{7*7} <%= 7*7 %>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "&#x3C;script&#x3E;window.hit=1&#x3C;/script&#x3E;",
    "\\u003cscript\\u003ewindow.hit=1\\u003c/script\\u003e",
    "\u2028window.hit=1\u2029",
    '\\"};window.hit=1;//',
    "\u202egnp.exe\u202c right to left",
    "\U000e0041\U000e0042 tags",
    "a\u0300\u0301\u0302\u0303" * 40,
    '=HYPERLINK("https://evil.example","x")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "\tcmd",
    "W" * 300,
    "😀" * 120,
    "lone \ud800 surrogate",
    "line one\r\nline two\rline three\nline four",
    *(f"<{tag} src=x {event}={RUN}>" for tag in _TAGS for event in _EVENTS[:2]),
    *(f"<{tag} {event}={RUN} tabindex=1 autofocus>x" for tag in _TAGS[:6] for event in _EVENTS[2:]),
]

LINKS = [
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f" javascript:{RUN}",
    f"java\nscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"vbscript:{RUN}",
    "file:///etc/passwd",
    "//evil.example/x",
    'https://evil.example/"onmouseover="window.hit=1',
    "http://[::1",
    "https://video.example/ok",
]


@cache
def hostile() -> Report:
    """At least a hundred payloads: as comments, speakers, topics, ids, addresses, facets, reasons,
    prompts, options."""
    writer = Writer()
    nth = {"at": 0}

    def attack() -> str:
        nth["at"] += 1
        return PAYLOADS[nth["at"] % len(PAYLOADS)]

    claims = [_claim(writer, at, payload) for at, payload in enumerate(PAYLOADS)]
    parts = [subtopic(f"{attack()}-{at}", attack(), attack(), claims[at::12]) for at in range(12)]
    topics = [
        topic(
            f"{attack()}{at}",
            attack(),
            attack(),
            parts[at::6],
            summary=(Sentence(attack(), (claims[at].id,)),),
        )
        for at in range(6)
    ]
    people = tuple(dict.fromkeys(comment.speaker for comment in writer.comments.values()))
    cruxes = tuple(
        _crux(at, topics[at].id, topics[at].subtopics[0].id, claims[at].id, people)
        for at in range(4)
    )
    cells = tuple(
        tuple(("agree", "disagree", "unclear", "")[(a + b) % 4] for b in range(4))
        for a in range(len(people))
    )
    report = writer.report(
        topics,
        id=attack(),
        title=PAYLOADS[2],
        question=PAYLOADS[7],
        description=attack(),
        language='en"><script>window.hit=1</script>',
        findings=tuple(
            Sentence(payload, (claims[at].id,)) for at, payload in enumerate(PAYLOADS[:8])
        ),
        cruxes=cruxes,
        matrix=Matrix(people, tuple(crux.id for crux in cruxes), cells),
        map=tuple(
            (comment.id, 0.01 * (comment.row % 100), 0.5) for comment in writer.comments.values()
        ),
    )
    return _dressed(report)


def _claim(writer: Writer, at: int, payload: str) -> ReportClaim:
    speaker = PAYLOADS[(at + 5) % len(PAYLOADS)]
    text = f"{payload} and so on"
    facets = {PAYLOADS[1]: f"{PAYLOADS[at % 3]}", "plain": ("red", "blue")[at % 2]}
    comment = Comment(
        f"{payload}#{at}", at + 1, text, speaker, video=LINKS[at % len(LINKS)], facets=facets
    )
    writer.comments[speaker, text] = comment
    quote = Quote(
        f"q-{at}{payload}",
        f"c-{at}{payload}",
        comment.id,
        at + 1,
        speaker,
        0,
        len(payload),
        payload,
        payload,
    )
    claim = ReportClaim(f"g-{at}{payload}", at + 1, payload, 1, (quote,), VoteCount(3, 2, 1, 4 / 6))
    writer.claims.append(claim)
    return claim


def _crux(at: int, topic: str, part: str, cite: str, people: tuple[str, ...]) -> ReportCrux:
    score = controversy(5, 4, 10)
    return ReportCrux(
        id=f"x{at}{PAYLOADS[at]}",
        topic=topic,
        subtopic=part,
        statement=PAYLOADS[at],
        explanation=PAYLOADS[at + 1],
        basis="claims",
        agree=5,
        disagree=4,
        unclear=1,
        agreeing=people[:5],
        disagreeing=people[5:9],
        undecided=people[9:10],
        agreement=0.5,
        disagreement=0.4,
        controversy=score,
        level=level(score),
        cites=(cite,),
    )


def _dressed(report: Report) -> Report:
    """The parts that tell how it was made, as hostile as the rest."""
    return replace(
        report,
        facets=(
            Facet(PAYLOADS[1], ((PAYLOADS[0], 30),)),
            Facet("plain", (("red", 50), ("blue", 50))),
        ),
        left_out=tuple(
            Row(900 + at, f"{at}", Fate.JUNK, payload, payload)
            for at, payload in enumerate(PAYLOADS[:9])
        ),
        funnel=(
            Stage("rows", 200),
            Stage(
                PAYLOADS[0],
                150,
                (LossReason(PAYLOADS[3], 50, (LossExample(PAYLOADS[7], PAYLOADS[8]),)),),
            ),
        ),
        source=replace(
            report.source,
            filename=PAYLOADS[7],
            columns={PAYLOADS[0]: PAYLOADS[7]},
            encoding=PAYLOADS[8],
        ),
        method=replace(
            report.method,
            analyst=PAYLOADS[7],
            generated=True,
            options={PAYLOADS[0]: PAYLOADS[7]},
            prompts=(PromptUsed(PAYLOADS[1], PAYLOADS[4], True),),
            notes=tuple(PAYLOADS[:6]),
            failed=((PAYLOADS[0], PAYLOADS[1]),),
        ),
        made=replace(report.made, at=PAYLOADS[0], software=PAYLOADS[11]),
        warnings=tuple(PAYLOADS[6:9]),
    )


def empty() -> Report:
    """A file with rows and not one comment among them."""
    rows = tuple(Row(at, str(at), Fate.EMPTY, "no text") for at in range(1, 4))
    counts = replace(bare().counts, rows=3)
    return replace(
        bare(title="Nobody said anything"),
        counts=counts,
        left_out=rows,
        funnel=(Stage("rows", 3), Stage("comments", 0, (LossReason("empty", 3),))),
    )
