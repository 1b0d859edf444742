"""Small reports in other scripts: Chinese, and Arabic, written from the right."""

from __future__ import annotations

from functools import cache

from tests.unit.report.page.samples import Writer, subtopic, topic

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.model.summary import Sentence

CHINESE = {
    "title": "網路叫車該怎麼管",
    "topics": [
        (
            "安全與保險",
            "乘客安全、駕駛資格與保險責任。",
            [
                (
                    "駕駛人應該有專業駕照與保險",
                    [
                        ("王小明", "[[沒有保險的車我不敢搭。]]出事的時候誰負責？"),
                        ("匿名 3", "我支持新服務，但是[[駕駛資格一定要跟計程車一樣嚴格]]。"),
                    ],
                ),
                (
                    "評價機制比執照更能保障安全",
                    [("林阿姨", "[[每一趟都有評分，比一張證照有用多了。]]")],
                ),
            ],
        ),
        (
            "稅與公平競爭",
            "課稅、車資與既有業者。",
            [("平台應該在本地繳稅", [("陳先生", "賺台灣人的錢，[[就應該在台灣繳稅]]。")])],
        ),
    ],
    "finding": "多數人同意平台應該納稅並負保險責任。",
}

ARABIC = {
    "title": "كيف نريد أن تكون مدينتنا؟",
    "topics": [
        (
            "النقل العام",
            "الحافلات والقطارات ومواعيدها.",
            [
                (
                    "يجب أن تمر الحافلات كل عشر دقائق",
                    [
                        ("سارة", "أنتظر كل يوم. [[حافلة كل عشر دقائق تكفي لأترك سيارتي.]]"),
                        ("Omar Khalil", "[[كل عشر دقائق، لا أكثر.]] I would use it every day."),
                        ("مجهول 4", "نريد [[حافلات أكثر]]"),
                        ("هدى", "[[لو جاءت الحافلة في وقتها لما احتجت إلى سيارة.]]"),
                    ],
                ),
            ],
        ),
        (
            "الأماكن العامة",
            "الحدائق والأرصفة والظل.",
            [("نحتاج إلى ظل وأشجار", [("يوسف", "في الصيف الماضي [[كانت الساحة كالفرن]].")])],
        ),
    ],
    "finding": "يريد معظم الناس حافلات أكثر قبل أي شيء آخر.",
}


@cache
def chinese() -> Report:
    return _report(CHINESE, "zh-TW")


@cache
def arabic() -> Report:
    return _report(ARABIC, "ar")


def translated(language: str) -> Report:
    """The same small report, said to be in another language."""
    return _report(CHINESE, language)


def _report(texts: dict, language: str) -> Report:
    writer = Writer({"city": ["北 / شمال", "南 / جنوب"]})
    topics = []
    for at, (name, about, claims) in enumerate(texts["topics"]):
        reported = [
            writer.claim(
                statement,
                [writer.quote(statement, *entry) for entry in quote],
                (40 + at, 12 * at + 3, 4),
            )
            for statement, quote in claims
        ]
        part = subtopic(f"s-{at}", name, about, reported)
        topics.append(
            topic(f"t-{at}", name, about, [part], summary=(Sentence(about, (reported[0].id,)),))
        )
    finding = Sentence(texts["finding"], (writer.claims[0].id, writer.claims[-1].id))
    return writer.report(topics, title=texts["title"], language=language, findings=(finding,))
