"""Phrases that could name a topic, as people write them, counted over all comments.

Where words have spaces, a phrase is one to four words of content, perhaps with a small word between
them ("money in politics"). Nothing is known about grammar but what the comments show: a word that
follows "the" or "our" and is followed by "is" or a full stop is used as a noun; one that follows
"to" or "we" is not, and makes no good name. Where words have no spaces, a phrase is a sequence of
characters with many different neighbours: a word is what keeps its shape in changing company."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.apps.report.local.inflection import (
    CAPITALISING,
    COMPOUNDING,
    DETERMINERS,
    WITH_ARTICLES,
    root,
    without_elision,
    words_inside,
)
from holdfast.apps.report.local.stop_words import HAN, word_set
from holdfast.apps.report.local.tokenizing import (
    UNKNOWN,
    UNSPACED,
    WORD,
    fold_case,
    language,
    stop_words,
)
from holdfast.apps.report.local.vague_words import BROAD, VAGUE_HAN, vague_roots
from holdfast.apps.report.local.word_classes import (
    MOSTLY_VERBS,
    is_adjective,
    is_gerund,
    is_noun_in_ing,
    is_verb,
    may_be_verb,
)

_NO_WORDS = re.compile(
    r"(?:https?://|www\.)\S+|\S+@\S+|(?<!\w)[@#]\w+|\b[\w-]+\.(?:com|org|net|gov|edu|io|tw)\b\S*"
)
_GAP = re.compile(r"[ \t]")
_KANJI = re.compile(r"[\u3400-\u9fff々]+|[\u30a0-\u30ff]+")
_KANA = re.compile(r"[\u3040-\u30ff]")
_RUN = re.compile(rf"[{UNSPACED}]+")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_GRAMMAR = re.compile("|".join(sorted(map(re.escape, HAN), key=len, reverse=True)))
_BETWEEN = word_set(
    """of in and for to the & de la le du des del di da do dos e et y und von der van en à al
    l' d' all' dell'"""
)
_ARTICLES = word_set("the la le")
"""Between two nouns only behind a preposition: "Detroit the schools" is two phrases."""
_BEFORE_NOUNS = word_set(
    """the a an our their my your his her its this these those every each all any no some more
    less of for in on about with against from by into and or der die das den dem ein eine einen
    unsere mehr für le la les un une des du nos leurs plus el los las una unos nuestro nuestra más
    il gli een het onze"""
)
_BEFORE_VERBS = word_set(
    """to we i they you he she it who should must will would can could don't doesn't didn't not
    never always please let's need cannot can't won't i'm wir ich sie zu nicht nous je vous ils ne
    pas nosotros yo que non wij ik niet"""
)
_BEFORE_ADJECTIVES = word_set(
    """be is are was were been being very too so as sein ist sind sehr zu être est sont très trop
    ser es son muy è molto"""
)
_AFTER_NOUNS = word_set(
    """is are was were be should must will would can could has have had needs need do does did of
    in for and or but to that which who ist sind war soll muss hat und oder est sont doit a ont et
    ou es son debe tiene y o è sono deve"""
)
_VERBS_HAN = tuple(
    word_set(
        """影響 影响 保護 保护 保障 提供 增加 減少 减少 提高 降低 改善 解決 解决 支持 反對 反对
        開放 开放 搭乘 使用 選擇 选择 接受 要求 造成 導致 导致 避免 禁止 加強 加强 推動 推动
        促進 促进 維持 维持 成為 成为 取代 取締 取缔 違反 违反 遵守 繳交 缴交 擔心 担心 需要
        希望 創造 创造 收取 購買 购买 討論 讨论 訂定 制定 符合 達到"""
    )
)
"""Verbs that begin a clause, not a name, where words have no spaces."""
_ODD, _ENDS_NOWHERE_HAN = 3, tuple("管叫搭繳缴讓让被把給给載载")
"""A word of two characters and one of these verbs is cut out of a clause."""
_LEADING_NOWHERE = word_set(
    """including regarding concerning pro anti non versus via per played playing watched watching
    voted loved liked wanted needed supported opposed"""
)
_SIDE, _TIME = ("pro-", "anti-", "non-"), ("pre-", "post-")
"""How words begin that describe a side and name nothing, and that describe a time and name nothing
alone."""
_OF_PEOPLE = ("ican", "ian", "liberal", "conservative")
_SHOWN = 4
"""Of so many uses that would show it, one must show that a word is a noun."""
_LONGEST = {"spaced": 6, "unspaced": 6}


@dataclass(slots=True)
class Phrase:
    """What is known of a phrase: in which sentences it is, and how it is written."""

    key: str
    parts: tuple[str, ...]
    """Its words of content, or its characters where there are no spaces."""
    unspaced: bool
    code: str = "en"
    """The language of the sentence that it was first in."""
    sentences: list[int] = field(default_factory=list)
    surfaces: Counter[str] = field(default_factory=Counter)
    inside: int = 0
    titled: int = 0
    """How often it stands inside a sentence, and how often there with capitals throughout."""


@dataclass(slots=True)
class _Uses:
    """How a word is used: after what and before what it stands, and with which capitals."""

    seen: int = 0
    as_noun: int = 0
    as_verb: int = 0
    as_adjective: int = 0
    at_end: int = 0
    inside: int = 0
    capital: int = 0
    shown: int = 0
    determined: int = 0
    """How often its language would show whether it is a noun, and how often that showed."""
    capitals: dict[str, Counter[str]] = field(default_factory=dict)


class Phrases:
    """All phrases of a set of sentences: by key, by sentence, and how much each looks like a
    name."""

    def __init__(
        self,
        by_key: dict[str, Phrase],
        uses: dict[str, _Uses],
        roots: dict[str, str],
        sentences: int,
    ) -> None:
        self.by_key = by_key
        self._roots = roots
        self.by_sentence: dict[int, list[str]] = {}
        for key, phrase in by_key.items():
            for sentence in phrase.sentences:
                self.by_sentence.setdefault(sentence, []).append(key)
        self._uses = uses
        common, subject = max(8, 0.25 * sentences), max(6, 0.2 * sentences)
        self.fitness = {
            key: 0.0
            if len(p.sentences) > (subject if self._is_name(p) else common)
            else self._looks(p)
            for key, p in by_key.items()
        }
        """Between 0 and 1.5. What everybody writes names nothing, least of all the place or the
        organisation that all talk about."""

    def leave_out_common_names(self, speakers: Sequence[str]) -> None:
        """The name of a place or an organisation that a third of the people speak of names nothing.
        `speakers` says whose each sentence is."""
        people = len(set(speakers))
        for key, phrase in self.by_key.items():
            naming = {speakers[sentence] for sentence in phrase.sentences}
            if len(naming) >= max(4, people / 3) and self._is_name(phrase):
                self.fitness[key] = 0.0

    def _is_name(self, phrase: Phrase) -> bool:
        """Whether it is the name of somebody or something: mostly written with a capital."""
        if phrase.unspaced:
            return False
        uses = [self._uses.get(part, _Uses()) for part in phrase.parts]
        return all(use.capital * 2 > use.inside > 0 for use in uses)

    def _looks(self, phrase: Phrase) -> float:
        length = len(phrase.parts)
        if phrase.unspaced:
            return {2: 0.8, 3: 1.1, 4: 1.4}.get(length, 1.3)
        if (length > 2 and len(phrase.sentences) < 3) or self._is_clause(phrase):
            return 0.0
        if length == 1 and phrase.parts[0] in BROAD:
            return 0.0
        first, last = phrase.parts[0], phrase.parts[-1]
        score = (
            {1: 0.75, 2: 1.5}.get(length, 1.4)
            * self._nounish(last)
            * (0.5 + 0.5 * self._nounish(first, ends=False))
        )
        vague = vague_roots(phrase.code)
        if all(part in vague for part in phrase.parts) or (
            first in vague and first.endswith("ing")
        ):
            return 0.0
        return score * (0.5 if last in vague else 1.0) * (0.5 if first in vague else 1.0)

    def _is_clause(self, phrase: Phrase) -> bool:
        """Whether an English phrase says what some do: a plural, then a word that is no plural and
        that nobody uses as a noun, as in "children adapt"."""
        words = min(phrase.surfaces).split()
        if len(words) != 2 or phrase.code not in ("en", UNKNOWN) or phrase.titled:
            return False
        several, then = (root(word) != fold_case(word) for word in words)
        return several and not then and not self._uses.get(phrase.parts[-1], _Uses()).as_noun

    def _nounish(self, word: str, ends: bool = True) -> float:
        if is_noun_in_ing(word):
            return 0.9
        uses = self._uses.get(word, _Uses())
        if uses.determined * _SHOWN < uses.shown:
            return 0.0
        noun = min(
            1.0,
            (uses.as_noun + 1.5) / (uses.as_noun + 2.5 * uses.as_verb + 2 * uses.as_adjective + 2),
        )
        return noun * min(1.0, 0.35 + (uses.at_end + 1) / (uses.seen + 1.5)) if ends else noun

    def written(self, phrase: Phrase) -> str:
        """A phrase as it is mostly written, with capitals only where people write them inside a
        sentence."""
        surfaces = Counter[str]()
        for surface, count in phrase.surfaces.items():
            surfaces[surface if phrase.unspaced else fold_case(surface)] += count
        best = min(surfaces.items(), key=lambda item: (-item[1], item[0]))[0]
        if phrase.key.endswith(_OF_PEOPLE):
            best = _plural(phrase) or best
        if phrase.unspaced:
            return best
        titled = phrase.titled * 2 > phrase.inside > 0 and len(phrase.parts) > 1
        return " ".join(self._cased(word, titled) for word in best.split())

    def _cased(self, word: str, titled: bool) -> str:
        uses = self._uses.get(self._roots.get(fold_case(word), ""))
        if uses is None:
            return word
        written = uses.capitals.get(word)
        if written and (titled or uses.capital * 2 > uses.inside):
            return min(written.items(), key=lambda item: (-item[1], item[0].isupper(), item[0]))[0]
        return word


def collect_phrases(sentences: Sequence[str], stop: frozenset[str], code: str = UNKNOWN) -> Phrases:
    """The phrases of all sentences that occur more than once. A sentence that is repeated counts
    once. What does not show its language is in the language `code`."""
    by_key: dict[str, Phrase] = {}
    uses: dict[str, _Uses] = defaultdict(_Uses)
    roots: dict[str, str] = {}
    compounding: dict[str, list[int]] = {}
    first = {fold_case(sentence): at for at, sentence in reversed(list(enumerate(sentences)))}
    for sentence, at in ((sentences[at], at) for at in sorted(first.values())):
        own = language(sentence)
        spoken = code if own == UNKNOWN else own
        tokens = _tokens(sentence, spoken)
        own_stop = stop | stop_words((spoken,))
        _note_uses(tokens, uses, own_stop, spoken)
        for token in tokens:
            roots.setdefault(token.folded, token.root)
            if spoken in COMPOUNDING and _carries(token, own_stop):
                compounding.setdefault(token.root, []).append(at)
        for key, (parts, first_word, surface) in _spaced(tokens, own_stop).items():
            phrase = by_key.setdefault(key, Phrase(key, parts, unspaced=False, code=spoken))
            phrase.sentences.append(at)
            phrase.surfaces[surface] += 1
            phrase.inside += not first_word
            phrase.titled += not first_word and surface.istitle()
    _count_compounds(by_key, compounding)
    phrases = _without_parts(
        {
            key: phrase
            for key, phrase in by_key.items()
            if len(phrase.sentences) > 1 and _could_name(phrase)
        }
    )
    phrases.update(_unspaced(sentences))
    return Phrases(phrases, dict(uses), roots, len(sentences))


def _count_compounds(by_key: dict[str, Phrase], compounding: dict[str, list[int]]) -> None:
    """A word is also where a compound with it is: who speaks of a "Facharzt" speaks of an
    "Arzt"."""
    hidden: dict[str, set[int]] = defaultdict(set)
    for word, sentences in compounding.items():
        for part in words_inside(word) & by_key.keys():
            hidden[part].update(sentences)
    for part, sentences in hidden.items():
        by_key[part].sentences = sorted(sentences.union(by_key[part].sentences))


def _could_name(phrase: Phrase) -> bool:
    """Whether a phrase could be a noun phrase: no verb at its beginning, a noun at its end. What
    people write with capitals throughout is a name already."""
    words = list(phrase.parts)
    if words[0] in _LEADING_NOWHERE or words[0].startswith(_SIDE):
        return False
    if len(words) == 1 and (words[0].startswith(_TIME) or not _names_people(phrase)):
        return False
    if len(words) == 1 and is_gerund(words[0]):
        return False
    if len(words) > 1 and phrase.titled * 2 > phrase.inside > 0:
        return True
    if may_be_verb(words[0]) or is_adjective(words[-1]):
        return False
    if len(words) > 1 and words[-1] in MOSTLY_VERBS:
        return False
    return not any(map(is_verb, words))


def _names_people(phrase: Phrase) -> bool:
    """A word like "Republican" describes; only its plural names anybody. Other words do."""
    return not phrase.key.endswith(_OF_PEOPLE) or _plural(phrase) != ""


def _plural(phrase: Phrase) -> str:
    plural = f"{phrase.key}s"
    return plural if any(fold_case(surface) == plural for surface in phrase.surfaces) else ""


class _Token(NamedTuple):
    """A word of a sentence; `apart` where a mark separates it from the word before."""

    word: str
    folded: str
    root: str
    apart: bool


def _tokens(sentence: str, code: str) -> list[_Token]:
    """The words of a sentence in the language `code`; links, addresses, handles and tags are no
    words."""
    sentence = _NO_WORDS.sub(" | ", sentence)
    tokens: list[_Token] = []
    end = 0
    for match in WORD.finditer(sentence):
        apart = not tokens or not _GAP.fullmatch(sentence[end : match.start()])
        elided, word = without_elision(match.group(), code)
        if elided:
            tokens.append(_Token(elided, fold_case(elided), fold_case(elided), apart))
            apart = False
        tokens.append(_Token(word, fold_case(word), root(word, code), apart))
        end = match.end()
    return tokens


def _note_uses(
    tokens: Sequence[_Token], uses: dict[str, _Uses], stop: frozenset[str], code: str
) -> None:
    for at, (word, folded, word_root, apart) in enumerate(tokens):
        if folded in stop:
            continue
        noted = uses[word_root]
        before = "" if apart else tokens[at - 1].folded
        follows = tokens[at + 1] if at + 1 < len(tokens) else None
        ends = follows is None or follows.apart
        noted.seen += 1
        noted.as_noun += (before in _BEFORE_NOUNS) + (
            not ends and follows is not None and follows.folded in _AFTER_NOUNS
        )
        noted.as_verb += before in _BEFORE_VERBS or (apart and not ends)
        noted.at_end += ends or (follows is not None and follows.folded in stop)
        noted.as_adjective += before in _BEFORE_ADJECTIVES
        noted.inside += not apart
        if code == CAPITALISING:
            noted.shown += not apart
            noted.determined += not apart and word[0].isupper()
        elif code in WITH_ARTICLES:
            noted.shown += 1
            noted.determined += before in DETERMINERS
        if word[0].isupper():
            noted.capital += not apart
            noted.capitals.setdefault(folded, Counter())[word] += 1


def _spaced(
    tokens: Sequence[_Token], stop: frozenset[str]
) -> dict[str, tuple[tuple[str, ...], bool, str]]:
    """The phrases of a sentence: key → (words of content, whether it begins a sentence, as
    written)."""
    phrases: dict[str, tuple[tuple[str, ...], bool, str]] = {}
    carrying = [_carries(token, stop) for token in tokens]
    for start in (at for at, carries in enumerate(carrying) if carries):
        parts: list[str] = []
        for end in range(start, min(start + _LONGEST["spaced"], len(tokens))):
            if end > start and tokens[end].apart:
                break
            if not carrying[end]:
                if _may_stand_between(tokens[end].folded, carrying[end - 1]):
                    continue
                break
            parts.append(tokens[end].root)
            if len(parts) > 4:
                break
            inner = tokens[start : end + 1]
            written = " ".join(token.word for token in inner).replace("' ", "'").replace("’ ", "’")
            key = " ".join(token.root for token in inner)
            phrases[key] = (tuple(parts), tokens[start].apart, written)
    return phrases


def _may_stand_between(word: str, behind_noun: bool) -> bool:
    return word in _BETWEEN and not (word in _ARTICLES and behind_noun)


def _carries(token: _Token, stop: frozenset[str]) -> bool:
    word = token.word
    if _UNSPACED.match(word) or token.folded in stop or not word[0].isalpha() or word[-1] in "'’":
        return False
    return len(word) > 2 or (len(word) == 2 and word.isupper())


def _unspaced(sentences: Sequence[str]) -> dict[str, Phrase]:
    """Sequences of characters that keep together: often there, with varied neighbours, in no larger
    one as often."""
    sequences: dict[str, Phrase] = {}
    beside: dict[str, tuple[set[str], set[str]]] = {}
    for at, sentence in enumerate(sentences):
        for sequence, left, right in _sequences(sentence):
            phrase = sequences.setdefault(
                sequence, Phrase(sequence, tuple(sequence), unspaced=True)
            )
            if not phrase.sentences or phrase.sentences[-1] != at:
                phrase.sentences.append(at)
                phrase.surfaces[sequence] += 1
            sides = beside.setdefault(sequence, (set(), set()))
            sides[0].add(left or f"^{at}")
            sides[1].add(right or f"${at}")
    words = {
        key: phrase
        for key, phrase in sequences.items()
        if _is_word(phrase, min(map(len, beside[key])))
    }
    return _without_parts(words)


def _is_word(phrase: Phrase, company: int) -> bool:
    times = len(phrase.sentences)
    return (
        times > 1
        and phrase.key not in VAGUE_HAN
        and not phrase.key.startswith(_VERBS_HAN)
        and not (len(phrase.key) == _ODD and phrase.key.endswith(_ENDS_NOWHERE_HAN))
        and (company > 4 or company >= max(min(times, 3), 0.5 * times))
    )


def _sequences(sentence: str) -> Iterator[tuple[str, str, str]]:
    """Sequences between grammar, each with the characters before and after it."""
    for run in _RUN.finditer(sentence):
        has_kana = bool(_KANA.search(run.group()))
        for start, end in _chunks(run.group()):
            start, end = run.start() + start, run.start() + end
            if has_kana and end - start > 1:  # between kana a run of kanji or katakana is one word
                yield sentence[start:end], "", ""
                continue
            for size in range(2, min(_LONGEST["unspaced"], end - start) + 1):
                for at in range(start, end - size + 1):
                    before, after = (
                        sentence[at - 1 : at] if at else "",
                        sentence[at + size : at + size + 1],
                    )
                    yield sentence[at : at + size], _beside(before), _beside(after)


def _beside(character: str) -> str:
    """A neighbouring character, or nothing if a mark stands there."""
    return character if _RUN.match(character) else ""


def _chunks(run: str) -> Iterator[tuple[int, int]]:
    if _KANA.search(run):
        yield from (match.span() for match in _KANJI.finditer(run))
        return
    start = 0
    for match in _GRAMMAR.finditer(run):
        yield start, match.start()
        start = match.end()
    yield start, len(run)


def _without_parts(phrases: dict[str, Phrase]) -> dict[str, Phrase]:
    """Without those that nearly always are a part of one larger phrase."""
    parts: set[str] = set()
    for phrase in phrases.values():
        words = phrase.key if phrase.unspaced else phrase.key.split()
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                part = words[start:end] if phrase.unspaced else " ".join(words[start:end])
                shorter = phrases.get(str(part))
                if (
                    shorter
                    and shorter is not phrase
                    and len(phrase.sentences) * 10 >= len(shorter.sentences) * 7
                ):
                    parts.add(shorter.key)
    return {key: phrase for key, phrase in phrases.items() if key not in parts}
