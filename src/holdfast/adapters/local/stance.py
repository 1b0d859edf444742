"""Whether two statements that look alike say opposite things.

Vectors hardly see a "not": two statements that differ by it alone are near neighbours. So what turns a statement round
is counted apart: negations, and words that have an opposite (more and less, allow and ban, support and oppose). Two
statements are kept apart when the signs do not agree, when they speak of opposite sides (men and women, rich and poor),
of different numbers, when one asks and the other says, or when the same words come in another order ("landlords
exploit tenants"). It errs on the side of keeping apart: two claims that were not merged are a blemish, a person counted
for the opposite of what they said is a wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from holdfast.adapters.local.words import UNSPACED, language, stop_words, units

_IDIOMS = re.compile(
    r"\b(?:not (?:only|just|merely|to mention)|no (?:doubt|matter|wonder)|nothing but|whether or not|or not|"
    r"if not the|can't wait|"
    r"nicht nur|non seulement|no s[oó]lo|no solamente|não só|non solo|niet alleen)\b"
    r"|不[只僅仅但論论管斷断過过同足]|非常|並非不|无论|無論|除非|不得不|(.)不\1|是否|有沒有|有没有",
    re.IGNORECASE,
)
"""What contains a negation without denying anything."""

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|cant|dont|doesnt|isnt|wont|shouldnt|hardly|"
    r"barely|rarely|"
    r"seldom|unlikely|lack|lacks|lacking|fail|fails|failed|refuse|refuses|deny|denies|avoid|prevent|[a-z]+n't|"
    r"nicht|kein|keine|keinen|keiner|keinem|keines|nie|niemals|nichts|niemand|ohne|weder|"
    r"pas|jamais|aucun|aucune|rien|sans|nul|nulle|personne n|"
    r"nunca|jamás|ningún|ninguna|ninguno|nadie|nada|sin|tampoco|ni|"
    r"não|nenhum|nenhuma|ninguém|sem|nem|non|mai|senza|nessun|nessuno|nessuna|niente|"
    r"niet|geen|nooit|niemand|zonder|inte|ingen|aldrig|utan|nie ma|"
    r"не|нет|никогда|никто|без|ни|لا|لم|لن|ليس|ليست|بدون)\b"
    r"|[不沒没無无未勿]|別(?=[再讓让去把要])|非(?=[法必])|ない|ません|なし",
    re.IGNORECASE,
)

_AXES = {
    "for or against": (
        r"\b(?:support|supports|supported|favou?r|favou?rs|endorse|approve|approves|welcome|agree|accept|accepts|"
        r"embrace|"
        r"(?:am|i'm|be|are) for|in favou?r|bin für|sind für|suis pour|a favor|befürworte\w*|unterstütz\w*|soutien\w*|"
        r"soutenir|favorable|apoy\w*|apoiar|apoio)\b|支持|贊成|赞成|同意",
        r"\b(?:oppose|opposes|opposed|against|reject|rejects|disagree|disapprove|object|anti|resist|"
        r"gegen|ablehn\w*|contre|oppos[eé]\w*|contra|opongo|rechaz\w*|contro|tegen)\b|反對|反对|拒絕|拒绝|抵制",
    ),
    "more or less": (
        r"\b(?:increase\w*|raise|raised|raises|more|higher|high|expand\w*|grow|growing|boost|strengthen|greater|many|"
        r"much|bigger|"
        r"larger|longer|up|mehr|erhöh\w*|höher\w*|plus|augment\w*|más|aument\w*|subir|mais|più|meer)\b|增加|提高|"
        r"更多|擴大|扩大|增強",
        r"\b(?:decreas\w*|reduc\w*|cut|cuts|cutting|less|fewer|lower|low|shrink|limit|weaken|smaller|few|little|"
        r"shorter|down|"
        r"weniger|(?:ge)?senk\w*|(?:ge)?kürz\w*|niedriger\w*|moins|rédui\w*|baiss\w*|menos|reduc\w*|bajar|recort\w*|"
        r"meno|minder)\b"
        r"|減少|减少|降低|更少|縮小|缩小|削減|削减|減弱",
    ),
    "allowed or not": (
        r"\b(?:allow|allows|allowed|legal|legali[sz]e\w*|permit\w*|lawful|erlaub\w*|autoris\w*|permett\w*|permit\w*|"
        r"legaliz\w*)\b"
        r"|允許|允许|合法|開放|开放|准許",
        r"\b(?:ban|bans|banned|banning|prohibit\w*|illegal|forbid\w*|criminali[sz]e\w*|outlaw\w*|restrict\w*|"
        r"verbiet\w*|verboten|"
        r"verbot\w*|interdi\w*|prohíb\w*|prohib\w*|ilegal|proibi\w*|viet\w+|verbied\w*)\b|禁止|違法|违法|非法|取締|"
        r"取缔",
    ),
    "kept or ended": (
        r"\b(?:keep|keeps|kept|maintain|protect\w*|preserv\w*|save|continue|build|create|start|begin|fund|open|stay|"
        r"remain|"
        r"behalten|schütz\w*|erhalten|gard\w+|protég\w*|mainten\w*|manten\w*|proteg\w*|conservar|construir)\b|保留|"
        r"保護|保护|維持|维持",
        r"\b(?:abolish\w*|dissolv\w*|repeal\w*|eliminat\w*|remov\w*|end|ends|ending|stop|stops|scrap|destroy\w*|"
        r"dismantl\w*|defund\w*|close\w*|"
        r"leave|quit|rid|abschaff\w*|stopp\w*|beend\w*|supprim\w*|abol\w*|arrêt\w*|elimin\w*|cerrar|suprim\w*)\b"
        r"|取消|廢除|废除|停止|關閉|关闭|廢止",
    ),
    "good or bad": (
        r"\b(?:good|great|better|best|fair|safe|safer|benefit\w*|help|helps|useful|effective|love|loves|like|likes|"
        r"beautiful|healthy|"
        r"clean|easy|cheap|win|wins|success\w*|trust|true|possible|right|strong|innocent|happy|friendly|exciting|"
        r"gut|gute|guten|besser\w*|gerecht\w*|sicher\w*|bon|bonne|bien|mieux|juste|utile|bueno|buena|mejor|justo|"
        r"justa|seguro|segura|"
        r"buono|meglio|goed|beter)\b|[好優优]|安全|公平|便宜|方便|喜歡|喜欢|進步|透明",
        r"\b(?:bad|worse|worst|unfair|unsafe|dangerous|harm\w*|hurt\w*|useless|ineffective|hate|hates|dislike\w*|"
        r"ugly|terrible|awful|"
        r"unhealthy|dirty|difficult|expensive|lose|loses|failure|distrust|false|impossible|wrong|weak|guilty|boring|"
        r"evil|"
        r"schlecht\w*|ungerecht\w*|gefährlich\w*|mauvais\w*|pire|injuste|inutile|dangereu\w*|malo|mala|peor|injusto|"
        r"injusta|"
        r"peligros\w*|cattivo|peggio|slecht|gevaarlijk)\b|[壞坏貴差]|危險|危险|討厭|讨厌|落後",
    ),
    "early or late": (
        r"\b(?:early|earlier|before|fast|faster|quick\w*|soon|sooner|first|früh\w*|schnell\w*|tôt|avant|pronto|"
        r"antes)\b|早|快",
        r"\b(?:late|later|after|slow\w*|delay\w*|last|spät\w*|langsam\w*|tard|après|tarde|después|lento)\b|晚|慢",
    ),
}

_SIDES = tuple(
    (re.compile(one, re.IGNORECASE), re.compile(other, re.IGNORECASE))
    for one, other in (
        (
            r"\b(?:men|man|male|males|boys?|fathers?|husbands?)\b|男",
            r"\b(?:women|woman|females?|girls?|mothers?|wives|wife)\b|女",
        ),
        (r"\b(?:rich|wealthy|reichen?|riches?|ricos?)\b|富", r"\b(?:poor|poorer|arm|armen|pauvres?|pobres?)\b|窮|穷"),
        (r"\b(?:democrats?|democratic|dems?)\b", r"\b(?:republicans?|gop)\b"),
        (r"\b(?:liberals?|progressives?|left|leftists?)\b", r"\b(?:conservatives?|right-wing|rightists?)\b"),
        (
            r"\b(?:public|öffentlich\w*|publiques?|públic\w*)\b|公共|公立",
            r"\b(?:private|privat\w*|privé\w*|privad\w*)\b|私人|私立|民營",
        ),
        (
            r"\b(?:young|youth|younger|jung\w*|jeunes?|jóvenes)\b|年輕|年轻",
            r"\b(?:old|older|elderly|seniors?|alten?|vieux|viej\w*)\b|老人",
        ),
        (r"\b(?:urban|cities|city|städt\w*|villes?)\b|城市", r"\b(?:rural|countryside|villages?|land)\b|鄉|乡"),
        (r"\bblack\b|黑", r"\bwhite\b|白"),
        (r"\b(?:employers?|bosses|companies)\b|雇主|業者", r"\b(?:employees?|workers?|staff)\b|員工|工人"),
        (r"\blandlords?\b|房東", r"\b(?:tenants?|renters?)\b|房客"),
        (r"\b(?:teachers?|lehrer\w*)\b|老師", r"\b(?:students?|pupils?|schüler\w*)\b|學生"),
        (r"\b(?:federal|national|nationwide)\b|中央", r"\b(?:local|state|municipal)\b|地方"),
        (
            r"\b(?:all|every|everyone|everybody|always|alle|tous|toutes|todos|todas)\b",
            r"\b(?:some|few|sometimes|einige|certains|algunos)\b",
        ),
        (r"\bbuy\w*\b|買", r"\bsell\w*\b|賣"),
        (r"\bimports?\b|進口", r"\bexports?\b|出口"),
        (r"\b(?:driver|drivers)\b|司機|司机", r"\b(?:passenger|passengers)\b|乘客"),
        (r"\buber\w*", r"\btaxis?\b|計程車|小黃|出租車"),
        (r"\b(?:pro-choice|pro choice)\b", r"\b(?:pro-life|pro life|anti-choice)\b"),
        (r"\b(?:cats?|katzen?|chats?|gatos?)\b|貓", r"\b(?:dogs?|hunde?|chiens?|perros?)\b|狗"),
    )
)
_CUES = {f"{way}{at}": (axis, sign) for at, axis in enumerate(_AXES) for way, sign in (("up", 1), ("down", -1))}
"""Which pair of opposites, and which side of it, each group of the pattern below stands for."""
_CUE = re.compile(
    "|".join(f"(?P<up{at}>{up})|(?P<down{at}>{down})" for at, (up, down) in enumerate(_AXES.values())), re.IGNORECASE
)
_ANY_SIDE = re.compile("|".join(side.pattern for pair in _SIDES for side in pair), re.IGNORECASE)
_NO_SIDE = (0,) * len(_SIDES)
_PREFIX = re.compile(r"(?:un|de|in|im|il|ir|dis|non-?|anti-?|miss|miß|dés|des)(?=\w{3})")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DENSE = re.compile(rf"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Stance:
    """What turns a statement one way or the other."""

    sign: int
    """1 or −1: the product of everything that turns it round."""
    negations: int
    idioms: int
    """Negations that deny nothing ("not only"): they still change what is said."""
    axes: dict[str, tuple[int, ...]]
    """For each pair of opposites that is touched, the signs in their order."""
    sides: tuple[int, ...]
    """For each pair of sides: 1 the one, −1 the other, 0 both or neither."""
    numbers: frozenset[str]
    asks: bool
    words: tuple[str, ...]
    """Words of content, in their order."""


@lru_cache(maxsize=32_768)
def stance(text: str) -> Stance:
    """What a statement stands for, as far as its words show."""
    plain, idioms = _IDIOMS.subn(" ", text.replace("’", "'"))
    negations = len(_NEGATION.findall(plain))
    axes = _signs(plain)
    turned = negations + sum(sign < 0 for signs in axes.values() for sign in signs)
    return Stance(
        sign=-1 if turned % 2 else 1,
        negations=negations,
        idioms=idioms,
        axes=axes,
        sides=tuple(_side(plain, *pair) for pair in _SIDES) if _ANY_SIDE.search(plain) else _NO_SIDE,
        numbers=frozenset(_NUMBER.findall(plain)),
        asks=plain.rstrip("\"'”’ ").endswith(("?", "？", "؟")),
        words=tuple(units(text, stop_words((language(text), "en")))),
    )


def without_cues(text: str) -> str:
    """A statement without the words that turn it one way or the other: what it speaks about."""
    return _CUE.sub(" ", _NEGATION.sub(" ", text.replace("’", "'")))


def _signs(text: str) -> dict[str, tuple[int, ...]]:
    """For each pair of opposites that a text touches, which way it turns each time."""
    found: dict[str, tuple[int, ...]] = {}
    for match in _CUE.finditer(text):
        axis, sign = _CUES[match.lastgroup or ""]
        found[axis] = (*found.get(axis, ()), sign)
    return found


def _side(text: str, one: re.Pattern[str], other: re.Pattern[str]) -> int:
    return bool(one.search(text)) - bool(other.search(text))


def opposed(one: Stance, other: Stance) -> bool:
    """Whether two statements must not be taken for the same: to speak of women is not to speak of everybody."""
    return (
        one.sign != other.sign
        or (one.negations, one.idioms) != (other.negations, other.idioms)
        or one.asks != other.asks
        or one.sides != other.sides
        or any(one.axes[axis] != other.axes[axis] for axis in one.axes.keys() & other.axes.keys())
        or one.numbers != other.numbers
        or denied(one.words, other.words)
        or denied(other.words, one.words)
        or _swapped(one.words, other.words)
    )


def denied(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one says "fair" and the other "unfair"."""
    theirs = set(others)
    for word in set(words) - theirs:
        match = _PREFIX.match(word)
        if match and len(word) - match.end() > 2 and word[match.end() :] in theirs:
            return True
    return False


def _swapped(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether nearly the same words come in another order."""
    shared = set(words) & set(others)
    enough = 0.5 if any(_DENSE.match(word) for word in shared) else 0.8
    if len(shared) < 2 or len(shared) < enough * len(set(words) | set(others)):
        return False
    mine, theirs = ([word for word in dict.fromkeys(each) if word in shared] for each in (words, others))
    return mine != theirs and not _turned_about(mine, theirs)


def _turned_about(words: list[str], others: list[str]) -> bool:
    """Whether only the two halves of a sentence changed places ("In the years ahead, …"): nobody's part is changed."""
    return len(words) > 3 and any(words[at:] + words[:at] == others for at in range(1, len(words)))


def contradicts(one: Stance, other: Stance) -> bool:
    """Whether two statements about the same thing say opposite things of it: exactly one thing turns one of them round.

    Narrower than `opposed`: other sides, numbers and questions make two statements different, not opposite.
    """
    if one.asks or other.asks or any(a * b < 0 for a, b in zip(one.sides, other.sides, strict=True)):
        return False
    turned = [axis for axis in one.axes.keys() & other.axes.keys() if one.axes[axis] != other.axes[axis]]
    if denied(one.words, other.words) or denied(other.words, one.words):
        return one.negations == other.negations and len(turned) < 2
    if abs(one.negations - other.negations) == 1:
        return not turned and one.axes.keys() == other.axes.keys()
    return one.negations == other.negations and len(turned) == 1 and one.sign != other.sign
