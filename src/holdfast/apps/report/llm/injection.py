"""Which texts look as if they were written to steer a model: they travel alone, so that they can
steer nobody else's.

Nothing is left out because of it: a suspicious comment is placed, read and quoted like every other
one. It only shares no call with other people's words. So this may err, and errs on the side of too
many: a false alarm costs one call. What such a comment says is told in its own words, in quotation
marks: “like this”. So its claims are known wherever they turn up, and later steps keep them out of
what they lay before a model.

It is no filter and no promise: what a comment can do at all is bounded by what the pipeline accepts
as an answer."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from holdfast.apps.report.model.claim import QuotedClaim

_RULES = (
    # Telling a model what to do with what it was told. First what must be in the text at all: that
    # is quickly seen.
    (
        "instruct prompt rule guideline direct command above previous prior earlier everything "
        "context system",
        r"\b(ignor|disregard|forget|overrid|bypass|skip|neglect|discard|drop|cancel|supersed|replac)\w*\b.{0,60}"
        r"\b(instruct|prompt|rule|guideline|direct|command|above|previous|prior|earlier|everything|context|system)",
    ),
    (
        "anweisung befehl regel vorherig bisherig instru consigne règle regla anterior précédent "
        "precedent regole",
        r"\b(ignorier|vergiss|vergesst|missacht|ignore[zr]|oublie|ignora|olvida|esqueça|dimentica)\w*\b.{0,60}"
        r"\b(anweisung|befehl|regel|vorherig|bisherig|instru|consigne|règle|regla|anterior|précédent|precedent|regole)",
    ),
    (
        "忽略 無視 无视 忘記 忘记 不要理會",
        r"(忽略|無視|无视|忘記|忘记|不要理會).{0,20}(指令|指示|提示|規則|规则|以上|之前|先前)",
    ),
    ("指示 命令", r"(以前の|上記の|これまでの).{0,10}(指示|命令).{0,10}(無視|忘れ)"),
    (
        "инструкц указани правил предыдущ",
        r"(игнорируй|забудь)\w*.{0,40}(инструкц|указани|правил|предыдущ)",
    ),
    ("تجاهل انس", r"(تجاهل|انس).{0,30}(التعليمات|الأوامر|السابقة)"),
    (
        "instruction prompt rule directive command",
        r"\b(new|real|actual|updated|hidden|secret|following|these|my)\s+(instruction|prompt|rule|directive|command)s?\b",
    ),
    (
        "prompt message instruction",
        r"\b(system|developer|initial|original)\s*[-_]?\s*(prompt|message|instruction)",
    ),
    (
        "now as different longer free",
        r"\b(you are|act|pretend|behave|respond|roleplay|imagine you)\b.{0,15}"
        r"\b(now an?|as if|as an?|a different|no longer|free of|free from)\b",
    ),
    (
        "jail injection mode anything",
        r"\b(jail-?break|prompt.?injection|(developer|dan|god) mode|do anything now)",
    ),
    (
        "ai assistant model llm bot gpt",
        r"\b(as an|you are an?|dear|hey|hello|note to|attention|message to)\b.{0,15}"
        r"\b(ai|assistant|language model|llm|bot|model|gpt)\b",
    ),
    # Telling it what to answer.
    (
        "only exactly verbatim nothing json following word every all",
        r"\b(output|print|respond|reply|answer|return|emit|write|say|repeat|echo|append|include)\b.{0,30}"
        r"\b(only|exactly|verbatim|nothing else|json|the following|the word|for every|for all|in "
        r"every)\b",
    ),
    (
        "comment claim quote speaker topic entr id",
        r"\b(all|other|every|each|any)\s+(the\s+)?(other\s+)?(comment|claim|quote|speaker|topic|entr|id)\w*\b.{0,60}"
        r"\b(assign|attribut|label|mark|put|set|merge|delete|remove|rename|call|output|agree)",
    ),
    (
        "comment claim quote speaker topic entr id",
        r"\b(assign|attribut|label|mark|merge|delete|remove|rename|classify|summari[sz]e|translate)\w*\b.{0,40}"
        r"\b(all|other|every|each)\s+(the\s+)?(other\s+)?(comment|claim|quote|speaker|topic|entr|id)",
    ),
    ("name call label rename title", r"\b(name|call|label|rename|title)\s+(every|all|each)\b"),
    (
        "secret key password token credential prompt",
        r"\b(reveal|show|leak|print|send|exfiltrate|disclose|tell)\b.{0,40}"
        r"\b(secret|api.?key|password|token|credential|prompt)",
    ),
    (
        "function tool command script",
        r"\b(function|tool)[ _-]?(call|use|result)s?\b"
        r"|\b(call|invoke|run|execute)\b.{0,15}\b(tool|function|command|script)",
    ),
    # Pretending to be part of the conversation, of our format, or of a file.
    (
        ":",
        r"(^|[\n\r>\]#*\"'])\s*(system|assistant|user|human|developer|ai|tool|instruction|note "
        r"to)\s*(\]|\*\*)?\s*:",
    ),
    (
        "<",
        r"<\s*/?\s*(data|system|assistant|user|instruction|prompt|topics|tool|function|script|s|im_|\|)[^<>]{0,40}>",
    ),
    ("<| |> inst] <<sys << im_start endoftext ``` ## ---- ====", r"."),
    (
        "begin end start stop",
        r"\b(begin|end|start|stop)\s+(of\s+)?(data|system|prompt|instruction|comment|input|block)",
    ),
    (
        "\" '",
        r"[{\[]\s*\\?[\"']\w+\\?[\"']\s*:|[\"'](id|claims|quote|statement|subtopics?|role|content)\\?[\"']\s*:",
    ),
    # Carrying something out, or in.
    ("](", r"\[[^\]]{0,200}\]\("),
    ("<", r"<\s*(img|a|iframe|svg|script|style|link)\b"),
    (":", r"\bdata:\w+/|javascript:|https?://\S*[?&={}]"),
    ("\\x \\u", r"(\\[xu][0-9a-f]{2,4}){4,}"),
    ("base64 rot13 hex morse unicode", r"\b(base64|rot13|hex(adecimal)?|morse|unicode)\b"),
    (
        "decod decrypt deciph",
        r"\b(decod|decrypt|deciph)\w*\b.{0,40}\b(follow|execut|obey|this|below|message)",
    ),
    ("0", r"([01]{8}\s*){6,}|([0-9a-f]{2}[ :]){24,}"),
)
_RULES_AS_READ = tuple(
    (needs.split(" "), re.compile(rule, re.IGNORECASE | re.DOTALL)) for needs, rule in _RULES
)

_CODE = re.compile(r"[A-Za-z0-9+/_=-]{40,}")
"""A word that nobody has ever spoken."""
_HIDDEN = re.compile(
    "[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069]|[\u200b-\u200f\u2060-\u2064\ufeff]{3}"
)
"""Tag characters, direction overrides, and runs of characters without width: what a reader can't
see."""
_JOINING = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_SPACED = re.compile(r"\b(?:\w[ .\-_*]){6,}\w\b")
"""w o r d s   w r i t t e n   l i k e   t h i s."""
_LOOKALIKES = str.maketrans("аеоріѕухсһԁոɡіАЕОРСХІЅ", "aeopisyxchdngiAEOPCXIS")


@lru_cache(maxsize=1 << 16)
def looks_like_injection(text: str) -> bool:
    """Whether a text should share no call with others."""
    if _SPACED.search(text) or _steers(text):
        return True
    if text.isascii():
        return False
    plain = unicodedata.normalize("NFKC", _JOINING.sub("", text)).translate(_LOOKALIKES)
    return bool(_HIDDEN.search(text)) or (plain != text and _steers(plain))


def as_quotation(quote: str) -> str:
    """The statement of a suspicious comment's claim."""
    return f"“{quote.strip('“”')}”"


def must_stay_apart(claim: QuotedClaim) -> bool:
    """Whether a claim should not be given to a model together with others."""
    return (
        _is_in_own_words(claim.statement)
        or looks_like_injection(claim.statement)
        or looks_like_injection(claim.quote)
    )


def _is_in_own_words(statement: str) -> bool:
    return statement.startswith("“") and statement.endswith("”")


def _steers(text: str) -> bool:
    low = text.lower()
    if any(
        any(need in low for need in needs) and rule.search(text) for needs, rule in _RULES_AS_READ
    ):
        return True
    return any(len(word) >= 40 and _CODE.search(word) for word in text.split())
