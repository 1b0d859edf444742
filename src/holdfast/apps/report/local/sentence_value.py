"""Whether a sentence says anything, and which sentences of a long comment say most.

Greetings, thanks, tests, bare agreement and strings of letters make no claim. What is left of a
short comment is all kept; of an interview only the sentences that assert, ask for or judge
something are worth a claim of their own."""

from __future__ import annotations

import re
from functools import lru_cache

from holdfast.apps.report.local.embeddings import token_counts
from holdfast.apps.report.local.stop_words import word_set
from holdfast.apps.report.local.tokenizing import (
    UNKNOWN,
    UNSPACED,
    WORD,
    fold_case,
    is_unspaced,
    language,
    stop_words,
)
from holdfast.apps.report.local.word_classes import is_finite

_LINK = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+\.\w+")
_PHATIC = word_set(
    """hello hi hey howdy greetings goodbye bye welcome thanks thank thx cheers congratulations
    sorry excuse morning evening yes yep yeah yup nope nah ok okay maybe perhaps idk lol haha wow
    omg hmm meh agree agreed disagree disagreed exactly absolutely definitely totally same true
    indeed awesome great cool nice good perfect amazing interesting whatever test tests testing
    tested comment comments statement statements foo bar baz asdf qwerty n/a na none nothing blah
    sure fine right sounds looks hope guess confused really sense understand mean idea question
    questions name bonjour salut merci oui non d'accord hallo guten tag danke umfrage ja nein
    genau hola gracias sí vale buenos días claro ciao grazie sì olá obrigado obrigada sim hoi dank
    bedankt привет спасибо да нет مرحبا شكرا نعم"""
)
_PHATIC_HAN = re.compile(
    r"(?:你好|您好|大家好|謝謝|谢谢|感謝|感谢|好的|是的|對|对|沒有|没有|不知道|同意|加油|讚|赞|哈+|測試|测试|試試|"
    r"好酷|ありがとう.*|はい|いいえ|こんにちは|(?:特に)?(?:なし|無し|ない|ありません|ございません)(?:です)?|"
    r"(?:わか|分か|判)(?:らない|りません))[喔哦啊了呢嗎吗吧啦！!。.～~]*"
)
_TRYING = re.compile(r"test(?:s|ing)?\b[^.,!?]*$", re.IGNORECASE)
"""Somebody tries whether the form works."""
_CONSONANTS = re.compile(
    r"^[bcdfghjklmnpqrstvwxz]{2,}$|[bcdfghjklmnpqrstvwxz]{5,}|(.{2,6})\1{2,}", re.IGNORECASE
)

_CLAIMING = re.compile(
    r"\b(?:should(?:n't)?|must|needs?|have to|has "
    r"to|ought|important|better|worse|problems?|issues?|because|"
    r"deserves?|lack|"
    r"support|oppose|believe|fair|unfair|rights?|require|never|too "
    r"(?:much|many|few|little)|change|help|afford|"
    r"want|wish|concern(?:ed|s)?|fear|hope|can't|don't have|there(?:'s| is| are) no|if we|instead|"
    r"muss|müssen|sollte[nt]?|brauchen|wichtig|weil|besser|problem|"
    r"faut|doit|doivent|devrait|important|parce que|mieux|"
    r"debe[nr]?|debería[n]?|necesita(?:mos|n)?|importante|porque|mejor|problema|deve|devono|bisogna|devem|"
    r"precis[ao]\w*|moet(?:en)?)\b"
    r"|應該|应该|需要|必須|必须|希望|問題|问题|因為|因为|不應|不应|支持|反對|反对|べき|必要|ほしい",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\b(?:(?:he|she|they|i|we) (?:said|says|was|were|went|came|told|got|had|did)|my name|i'm "
    r"\d|years? old|you know|"
    r"when i was|i remember|like i said|let me|i mean)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:why|where|how|who|what|when|once)\b"
    r"|(?:should|shouldn't|do|does|did|is|are|can|could|would|will) (?:we|you|i|they|he|she|it)\b",
    re.IGNORECASE,
)
_STUTTER = re.compile(r"\b([\w']+)[,.]? \1\b|[,.?]\s+[,.?]", re.IGNORECASE)
_POINTS_BACK = re.compile(
    r"(?:and |but |so )?(?:the (?:latter|former|same)|he|she|they|it|it's|that|this|there|those"
    r"|these|you)\b",
    re.IGNORECASE,
)
_HANGS = re.compile(
    r"(?:because|cause|cuz|'cause|if|when|then|although|though|while|until|unless|since|as|like|to|"
    r"maybe|aside|once|also|plus|still|now|even|which|who|where|or|nor|weil|wenn|dass|parce|"
    r"car|quand|si|porque|cuando)\b",
    re.IGNORECASE,
)
"""How a clause begins that hangs on another."""
_LEADS_NOWHERE = re.compile(
    r"\b(?:and|but|so|the|a|an|of|to|like|with|or|is|are|was|my|our|your|you know|in|on|at|from|"
    r"by|into|than|as|because|if|when|who|which|you get|such|very|i)[\s.,]*$"
    r"|(?<!\bfor )that[\s.,]*$",
    re.IGNORECASE,
)


_POINTS_OUT = re.compile(
    r"\b(?:this|these|those|they|them|'em|he|she|him|his|her|hers)\b"
    r"|\bdo it\b|\bthat's\b|\bthere was\b"
    r"|\b(?:right|just) now\b|\b(?:in|out|over|right|back) (?:here|there)\b"
    r"|\b(?:recently|me|myself|ain't|gonna|gotta|wanna|y'all)\b"
    r"|\b(?:i|he|she|they) (?!need)\w+ed\b"
    r"|\b(?:oh|uh|um|okay|well|see|ear),\s"
    r"|\bthat (?:type|kind|sort|way|one|stuff|thing|point|model)\b|\?",
    re.IGNORECASE,
)
"""Words that mean something that was said or shown before, or tell what somebody did."""
_ABOUT_ONESELF = re.compile(
    r"(?:i agree|i disagree|same here)\b|(?:i|i'm|i've|i'd|i'll|me|my)\b"
    r"(?! (?:support|believe|think|feel|want|oppose|hope|wish|expect|agree|strongly|fully|would "
    r"like)\b)|我(?!們|们|國|国)",
    re.IGNORECASE,
)
_BEGUN_ANEW = re.compile(
    r"\b(\w+(?: [\w']+){2,}),? \1\b|\bbe there (?:is|are)\b"
    r"|,\s+(?:i|it|the|a|an|and|but|so|you|we|they|to|of|that|because|like|or|it's|that's)[,.?]"
    r"|\b(?:i|the|a|an|to|of|and|my|our|your|with|for|at|from),\s"
    r"|\b(a|the|my|to) \w{1,3} \2\b|\b(\w{1,3})\s\3\w+"
    r"|\b([\w']+)[,.]? \4\b(?<!that that)(?<!had had)"
    r"|\b(?:i|we|they|you)(?:'[a-z]+)?,? (?:i|we|they|you)\b(?!')"
    r"|\b(?:so|and|but|because|the|a|to|of|my|i|is|was|for|with|if|get|got)[.?]\s*(?:$|[A-Z])",
    re.IGNORECASE,
)
"""Speech that breaks off and begins again: "I, it sucks", "t technology", "So I."."""
_RELATIVE = word_set("that who which whose where whom when because if")
_STOP = re.compile(r"[.!?…]+(?:\s|$)")


def content_words(text: str) -> list[str]:
    """The words of a text that could carry a thought: no grammar, no courtesies, no numbers."""
    stop = stop_words(tuple(sorted({"en", language(text)})))
    words = [word for word in WORD.findall(_LINK.sub(" ", text)) if not word.isdigit()]
    folded = [(word, fold_case(word)) for word in words if any(map(str.isalpha, word))]
    return [word for word, bare in folded if bare not in stop and bare not in _PHATIC]


@lru_cache(maxsize=32_768)
def is_filler(text: str) -> bool:
    """Whether a text makes no statement at all."""
    bare = _LINK.sub(" ", text).strip()
    if len(bare) > 8 and len(set(bare.casefold()) - set(" .,!?")) < 4:
        return True
    if is_unspaced(bare):
        return len(re.findall(rf"[{UNSPACED}]", bare)) < 4 or bool(_PHATIC_HAN.fullmatch(bare))
    carrying = content_words(bare)
    spoken = len(WORD.findall(bare))
    if not carrying or (len(carrying) == 1 and spoken < 3) or (spoken < 6 and _TRYING.match(bare)):
        return True
    return sum(map(is_gibberish, carrying)) * 2 >= len(carrying) and not _has_grammar(bare)


def _has_grammar(text: str) -> bool:
    """Whether a text has small words of a language, as no string of letters has."""
    stop = stop_words(tuple(sorted({"en", language(text)})))
    return any(fold_case(word) in stop and len(word) > 1 for word in WORD.findall(text))


@lru_cache(maxsize=65_536)
def is_gibberish(word: str) -> bool:
    """Whether a string of letters is no word of any language: typed at random or endlessly
    repeated."""
    if len(word) > 40:
        return True
    if not word.isascii() or (word.isupper() and len(word) < 6):
        return False
    if _CONSONANTS.search(word) or (len(word) > 3 and any(map(str.isdigit, word))):
        return True
    return len(word) > 4 and token_counts([word])[0] >= max(3, len(word) / 2)


def is_sentence(text: str) -> bool:
    """Whether spoken words are a sentence: they begin and end like one, hang on nothing, say what
    somebody or something does, and were not begun anew."""
    bare = text.strip().strip("\"'“”‘’")
    if is_unspaced(bare):
        return True
    is_complete = bare[:1].isupper() and bare.endswith((".", "!", "?", "…"))
    if not is_complete or _HANGS.match(bare) or _LEADS_NOWHERE.search(bare):
        return False
    return has_predicate(bare) and not _BEGUN_ANEW.search(bare) and _pieces_are_whole(bare)


def has_predicate(text: str) -> bool:
    """Whether an English sentence says what its subject is or does: a verb comes before a clause
    that hangs on a noun. Other languages are not judged."""
    if language(text) not in ("en", UNKNOWN):
        return True
    before = ""
    for at, word in enumerate(WORD.findall(text.replace("’", "'"))):
        if fold_case(word) in _RELATIVE:
            return False
        is_name = at and word[0].isupper() and not word.isupper()
        if is_finite(fold_case(word)) and not is_name and before != "to":
            return True
        before = fold_case(word)
    return False


def _pieces_are_whole(text: str) -> bool:
    """Whether no part between two full stops is a scrap like "Right." or "So I."."""
    return is_unspaced(text) or all(
        len(piece.split()) > 2 for piece in _STOP.split(text) if piece.strip()
    )


def stands_alone(statement: str) -> bool:
    """Whether a statement can be understood without what was said around it: one sentence that
    ends, asks nothing, points at nothing before it, tells nobody's own story, and is neither a few
    words nor a speech."""
    length = len(statement) * (2.5 if is_unspaced(statement) else 1)
    if not 25 <= length <= 180 or statement.rstrip("\"'”’ ").endswith(("?", "？", "…")):
        return False
    bare = statement.replace("’", "'")
    unclear = (_HANGS, _POINTS_BACK, _ABOUT_ONESELF, _ASKS)
    return (
        not any(pattern.match(bare) for pattern in unclear)
        and not any(
            pattern.search(bare)
            for pattern in (_LEADS_NOWHERE, _STUTTER, _TELLING, _POINTS_OUT, _BEGUN_ANEW)
        )
        and _pieces_are_whole(bare)
        and all(has_predicate(piece) for piece in _STOP.split(bare) if piece.strip())
    )


def claim_score(sentence: str) -> float:
    """How much a sentence claims, for choosing among those of a long comment. Around 1; questions
    and tales less."""
    length = len(sentence) * (2.5 if is_unspaced(sentence) else 1)
    score = 1.0 + 0.35 * min(3, len(_CLAIMING.findall(sentence)))
    score -= 0.5 * sentence.rstrip("\"'”’ ").endswith(("?", "？")) or 0.3 * (
        "?" in sentence or "？" in sentence
    )
    score -= 0.3 * min(2, len(_TELLING.findall(sentence))) + 0.3 * bool(_ASKS.match(sentence))
    score -= 0.15 * min(3, len(_STUTTER.findall(sentence)))
    score -= 0.3 * bool(_LEADS_NOWHERE.search(sentence)) + 0.2 * bool(_POINTS_BACK.match(sentence))
    return score - 0.4 * (length < 40) - 0.2 * (length > 220)
