"""Words that turn a statement one way or the other: negations, words that have an opposite, and
sides.

Lists of our own, in a few languages. A star stands for any ending. Where words have no spaces they
are looked for inside a run of characters, longest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.apps.report.local.tokenizing import UNSPACED, WORD, fold_case

NEGATION = "negation"
_NEGATIONS = """don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't
    shouldn't hasn't haven't hadn't ain't mustn't needn't not no never none nobody nothing
    neither nor without cannot cant dont doesnt isnt wont shouldnt hardly barely rarely seldom
    unlikely lack lacks lacking fail fails failed refuse refuses deny denies avoid prevent nicht
    kein keine keinen keiner keinem keines nie niemals nichts niemand ohne weder pas jamais aucun
    aucune rien sans nul nulle nunca jamás ningún ninguna ninguno nadie nada sin tampoco ni não
    nenhum nenhuma ninguém sem nem non mai senza nessun nessuno nessuna niente niet geen nooit
    zonder inte ingen aldrig utan не нет никогда никто без ни لا لم لن ليس ليست بدون 不 沒 没 無
    无 未 勿 別再 别再 別讓 别让 非法 非必 ない ません なし"""

_AXES = {
    "for or against": (
        """support supports supported favor favour favors favours endorse approve approves
        welcome agree accept accepts embrace befürworte* unterstütz* soutien* soutenir favorable
        apoy* apoiar apoio am_for i'm_for be_for are_for bin_für sind_für suis_pour 支持 贊成
        赞成 同意""",
        """oppose opposes opposed against reject rejects disagree disapprove object anti resist
        gegen ablehn* contre opposé* contra opongo rechaz* contro tegen 反對 反对 拒絕 拒绝 抵制""",
    ),
    "more or less": (
        """increase* raise raised raises more higher high expand* grow growing boost strengthen
        greater many much bigger larger longer up mehr erhöh* höher* plus augment* más aument*
        subir mais più meer 增加 提高 更多 擴大 扩大 增強""",
        """decreas* reduc* cut cuts cutting less fewer lower low shrink limit weaken smaller few
        little shorter down weniger senk* gesenkt* kürz* gekürzt* niedriger* moins rédui* baiss*
        menos bajar recort* meno minder 減少 减少 降低 更少 縮小 缩小 削減 削减 減弱""",
    ),
    "allowed or not": (
        """allow allows allowed legal legaliz* legalis* permit* lawful erlaub* autoris* permett*
        允許 允许 合法 開放 开放 准許""",
        """ban bans banned banning prohibit* illegal forbid* criminaliz* criminalis* outlaw*
        restrict* verbiet* verboten verbot* interdi* prohíb* prohib* ilegal proibi* verbied*
        禁止 違法 违法 非法 取締 取缔""",
    ),
    "kept or ended": (
        """keep keeps kept maintain protect* preserv* save continue build create start begin fund
        open stay remain behalten schütz* erhalten garder protég* mainten* manten* proteg*
        conservar construir 保留 保護 保护 維持 维持""",
        """abolish* dissolv* repeal* eliminat* remov* end ends ending stop stops scrap
        destroy* dismantl* defund* close* leave quit rid should_go must_go has_to_go
        have_to_go needs_to_go abschaff* stopp* beend* supprim* abol* arrêt* elimin* cerrar
        suprim* 取消 廢除 废除 停止 關閉 关闭 廢止""",
    ),
    "good or bad": (
        """good great better best fair safe safer benefit* help helps useful effective love loves
        like likes beautiful healthy clean easy cheap win wins success* trust true possible right
        strong innocent happy friendly exciting gut gute guten besser* gerecht* sicher* bon bonne
        bien mieux juste utile bueno buena mejor justo justa seguro segura buono meglio goed beter
        好 優 优 安全 公平 便宜 方便 喜歡 喜欢 進步 透明""",
        """bad worse worst unfair unsafe dangerous harm* hurt* useless ineffective hate hates
        dislike* ugly terrible awful unhealthy dirty difficult expensive lose loses failure
        distrust false impossible wrong weak guilty boring evil schlecht* ungerecht* gefährlich*
        mauvais* pire injuste inutile dangereu* malo mala peor injusto injusta peligros* cattivo
        peggio slecht gevaarlijk 壞 坏 貴 差 危險 危险 討厭 讨厌 落後""",
    ),
    "early or late": (
        """early earlier before fast faster quick* soon sooner first früh* schnell* tôt avant
            pronto antes 早 快""",
        """late later after slow* delay* last spät* langsam* tard après tarde después lento 晚
            慢""",
    ),
}

_SIDES = (
    (
        "men man male males boy boys father fathers husband* 男",
        "women woman female* girl girls mother* wife wives 女",
    ),
    ("rich wealthy reich* riches rico ricos 富", "poor poorer arm armen pauvre* pobre* 窮 穷"),
    ("democrat democrats democratic dem dems", "republican republicans gop"),
    (
        "liberal liberals progressive progressives left leftist*",
        "conservative conservatives right-wing rightist*",
    ),
    (
        "public öffentlich* publique* públic* 公共 公立",
        "private privat* privé* privad* 私人 私立 民營",
    ),
    (
        "young youth younger jung* jeune* jóvenes 年輕 年轻",
        "old older elderly senior* alte* vieux viej* 老人",
    ),
    ("urban city cities städt* ville* 城市", "rural countryside village* 鄉 乡"),
    ("black 黑", "white 白"),
    (
        "employer* boss bosses company companies 雇主 業者",
        "employee* worker workers staff 員工 工人",
    ),
    ("landlord* 房東", "tenant* renter* 房客"),
    ("teacher* lehrer* 老師", "student students pupil* schüler* 學生"),
    ("federal national nationwide 中央", "local state municipal 地方"),
    (
        "all every everyone everybody always alle tous toutes todos todas",
        "some sometimes einige certains algunos",
    ),
    ("buy* 買", "sell sells selling 賣"),
    ("import imports 進口", "export exports 出口"),
    ("driver* 司機 司机", "passenger* 乘客"),
    ("uber*", "taxi taxis 計程車 小黃 出租車"),
    ("pro-choice pro_choice", "pro-life pro_life anti-choice"),
    ("cat cats katze* chat chats gato* 貓", "dog dogs hund* chien* perro* 狗"),
)
SIDES = len(_SIDES)

IDIOMS = re.compile(
    r"\b(?:not (?:only|just|merely|to mention)|no (?:doubt|matter|wonder)|nothing but|whether or "
    r"not|or not|if not the|"
    r"can't wait|nicht nur|non seulement|no s[oó]lo|no solamente|não só|non solo|niet alleen)\b"
    r"|不[只僅仅但論论管斷断過过同足]|非常|並非不|无论|無論|除非|不得不|(.)不\1|是否|有沒有|有没有",
    re.IGNORECASE,
)
"""What contains a negation without denying anything."""

Label = tuple[str, int]
"""What a cue says: a negation, a pair of opposites with its side (1 or −1), or a pair of sides by
number."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A word of a text that turns it."""

    label: Label
    start: int
    end: int


class _Lexicon:
    """Cues by word, by the beginning of a word, by two words, and inside runs of characters."""

    def __init__(self, entries: dict[Label, str]) -> None:
        self._words: dict[str, Label] = {}
        self._beginnings: dict[str, list[tuple[str, Label]]] = {}
        inside: dict[str, Label] = {}
        for label, text in entries.items():
            for word in text.split():
                if _UNSPACED.match(word):
                    inside[word] = label
                elif word.endswith("*"):
                    self._beginnings.setdefault(word[:3], []).append((word[:-1], label))
                else:
                    self._words[word.replace("_", " ")] = label
        self._inside = inside
        longest = sorted(inside, key=lambda word: (-len(word), word))
        self._runs = re.compile("|".join(longest)) if longest else None

    def find(self, text: str) -> Iterator[Cue]:
        before = ""
        for match in WORD.finditer(text):
            word = fold_case(match.group())
            if _UNSPACED.match(word):
                yield from self._within(match)
            elif (
                label := self._words.get(f"{before} {word}")
                or self._words.get(word)
                or self._by_beginning(word)
            ):
                yield Cue(label, match.start(), match.end())
            before = word

    def _by_beginning(self, word: str) -> Label | None:
        return next(
            (
                label
                for start, label in self._beginnings.get(word[:3], ())
                if word.startswith(start)
            ),
            None,
        )

    def _within(self, run: re.Match[str]) -> Iterator[Cue]:
        for match in self._runs.finditer(run.group()) if self._runs else ():
            yield Cue(
                self._inside[match.group()], run.start() + match.start(), run.start() + match.end()
            )


_UNSPACED = re.compile(rf"[{UNSPACED}]")
_TURNING = _Lexicon(
    {(NEGATION, -1): _NEGATIONS}
    | {
        (axis, sign): words
        for axis, ways in _AXES.items()
        for words, sign in zip(ways, (1, -1), strict=True)
    }
)
_TAKING = _Lexicon(
    {(str(at), sign): pair[sign < 0] for at, pair in enumerate(_SIDES) for sign in (1, -1)}
)


def turning_cues(text: str) -> list[Cue]:
    """The negations and opposites in a text, in their order."""
    return list(_TURNING.find(text))


def side_cues(text: str) -> list[Cue]:
    """The sides a text speaks of."""
    return list(_TAKING.find(text))
