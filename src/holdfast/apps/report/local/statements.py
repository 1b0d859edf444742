"""What a sentence says, as a claim: its own words without what only leads up to them.

The quote beside a claim stays exactly as it was written; the statement drops "I think that",
"Well," and "Yes," at the beginning, the stutter of spoken words and stray marks, and begins with a
capital."""

from __future__ import annotations

import re

from holdfast.apps.report.local.stop_words import word_set
from holdfast.apps.report.local.tokenizing import UNSPACED, stop_words

_LEADS = re.compile(
    r"""(?:
      (?:well|so|and|but|yes|yeah|yep|no|ok|okay|now|also|plus|like|look|right|honestly|basically|actually|personally
         |frankly|definitely|absolutely|exactly|i\ mean|you\ know|you\ know\ what|i\ guess
         |of\ course|again
         |first\ of\ all|hopefully)
         \s*[,.:;…-]+\s+
    | (?:and|but|so|(?:because|cause|cuz|'cause)(?!.*[,;]))\s+(?=\S+\s+\S+\s+\S+\s+\S)
    | i\ (?:really\ |strongly\ |also\ |just\ |still\ |truly\ |do\ |honestly\ )?
         (?:think|believe|feel(?:\ like)?|guess|suppose|know)
         (?:\ that\s+|\s+(?=(?:the|a|an|we|it|it's|they|there|there's|these|those|this|our|all
            |every|no|if|people
            |women|men|everyone|nobody|you|he|she|his|her|their|its|most|many|some|any|as|when|to|more|less|public
            |government)\b))
    | (?:in\ my\ (?:humble\ )?opinion|imho|imo|to\ me|for\ me|as\ far\ as\ i'm\ concerned
         |i'd\ say|i\ would\ say)
         (?:\ that)?,?\s+
    | (?:je\ (?:pense|crois|trouve)|à\ mon\ avis|selon\ moi)(?:\ qu(?:e\s+|['’])|,?\s+)
    | (?:(?:yo\ )?(?:creo|pienso|opino|considero)\ que|en\ mi\ opinión,?)\s+
    | (?:(?:eu\ )?(?:acho|penso|acredito)\ que|na\ minha\ opinião,?)\s+
    | (?:(?:io\ )?(?:penso|credo)\ che|secondo\ me,?)\s+
    | meiner\ meinung\ nach,?\s+(?=\S+\s+(?:ist|sind|hat|haben)\b)
    | (?:我(?:個人|个人|們|们)?(?:也)?(?:覺得|觉得|認為|认为|想|相信))[，,：:\s]*
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_SAME_AGAIN = re.compile(r"\b((?:[\w']+ ){0,2}[\w']+)(?:[,.]? +\1\b)+", re.IGNORECASE)
_DOUBLED = word_set("""very really so many much no never far long way more that had""")
"""Words that people double on purpose, or that grammar doubles."""
_HESITATION = re.compile(
    r"(?:(?<=^)|(?<=[\s,.]))(?:um+|uh+|er+|hmm+|mm-?hmm+|you know,|i mean,)[,.]?\s+", re.IGNORECASE
)
_STRAY = (
    (re.compile(r"(?<=\s)[,.](?=\s)"), ""),
    (re.compile(r"(?<=[,;])\s*\?(?=\s|$)"), ""),
    (re.compile(r"\s+"), " "),
    (re.compile(r"\s+([,.](?:\s|$))"), r"\1"),
)
_SMALL = stop_words(("en",))
_QUOTED = re.compile(r"[\"“”«»„]([^\"“”«»„]+)[\"“”«»„][.!?]?")
_CLAUSE_END = re.compile(r"[.;:!?](?=\s)|,\s|[。！？；，、]|\s[–—-]\s")
_WORD_END = re.compile(r"\s")
_BEGINS = re.compile(r"^(?:[\s*•·▪,;:.、，。…)\]]|[-–—](?!\d))+")


def as_statement(sentence: str) -> str:
    """The claim that a sentence makes. Never empty if the sentence has a word."""
    text = " ".join(sentence.encode("utf-8", "ignore").decode().split())
    if quoted := _QUOTED.fullmatch(text):
        text = quoted.group(1)
    elif text.startswith('"') and text.count('"') % 2:  # the quotation ends in another sentence
        text = text[1:]
    text = _SAME_AGAIN.sub(_once, _HESITATION.sub("", text))
    for pattern, replacement in _STRAY:
        text = pattern.sub(replacement, text)
    text = (_BEGINS.sub("", _without_leads(_BEGINS.sub("", text))) or text).strip()
    return text[:1].upper() + text[1:]


def _once(match: re.Match[str]) -> str:
    """Small words that are said twice are a stutter; words of content may be an enumeration, and
    capitals an operator: "with AND and OR"."""
    repeated = match.group(1)
    if len(repeated) > 1 and repeated.isupper() and not match.group(0).isupper():
        return match.group(0)
    small = [word for word in repeated.lower().split() if word in _SMALL and word not in _DOUBLED]
    return repeated if len(small) == len(repeated.split()) else match.group(0)


def _without_leads(text: str) -> str:
    """Without up to three introductions, as long as a sentence is left."""
    for _ in range(3):
        match = _LEADS.match(text)
        if not match or not _says_enough(text[match.end() :]):
            break
        text = text[match.end() :]
    return text


def _says_enough(rest: str) -> bool:
    return len(rest.split()) > 2 or len(re.findall(rf"[{UNSPACED}]", rest)) > 3


def shortened(text: str, longest: int) -> str:
    """A text cut where a clause or at least a word ends, if it is too long."""
    if len(text) <= longest:
        return text
    cut = text[:longest]
    for pattern in (_CLAUSE_END, _WORD_END):
        ends = [match.start() for match in pattern.finditer(cut) if match.start() > longest // 2]
        if ends:
            return cut[: ends[-1]].rstrip(" ,;:–—-") + " …"
    return cut.rstrip() + "…"
