"""Words that name nothing, whatever people write about."""

from __future__ import annotations

from functools import cache

from holdfast.apps.report.local.inflection import root
from holdfast.apps.report.local.stop_words import word_set

_ENGLISH = word_set(
    """people person thing issue problem way lot time year day today one kind place part number
    fact point example reason something someone anyone everyone nothing everything stuff bit
    good bad new better best big real important able many great old little different certain
    sure own whole couple week month hour minute man guy folk idea matter case level form order
    piece past worst end line term side top super half first second third last next two three
    four five six seven eight nine ten hundred thousand million true false wrong long short high
    low full free possible actual general yeah despite finally everywhere anywhere inside
    outside apart amount majority statement story chance fight word reality situation cetera
    difference consequence threat access result effect life impact involvement
    head direction experience favorite favourite somewhere elsewhere nowhere anybody nobody
    somebody position else course instance regard respect basis aspect perspective suck sucks
    funny crazy anything needing dealing taking going getting having making coming looking
    trying saying wanna gonna gotta outta kinda lotta mm-hmm"""
)
_ELSEWHERE = {
    "de": """leute mensch person sache ding jahr zeit tag woche monat stunde minute uhr euro cent
    prozent meter kilometer stück teil seite ende anfang thema problem frage grund beispiel punkt
    fall weise art mal abend morgen nacht heute gestern""",
    "fr": """gens personne chose année an temps jour semaine mois heure minute fois euro pourcent
    partie côté fin début problème question raison exemple point cas façon manière matin soir nuit
    monde""",
    "es": """gente persona cosa año tiempo vez día semana mes hora minuto euro parte lado fin
    principio problema pregunta razón ejemplo punto caso manera forma mañana tarde noche mundo""",
    "it": """gente persona cosa anno tempo volta giorno settimana mese ora minuto euro parte lato
    fine inizio problema domanda ragione esempio punto caso modo mattina sera notte mondo""",
    "pt": """gente pessoa coisa ano tempo vez dia semana mês hora minuto euro parte lado fim início
    problema pergunta razão exemplo ponto caso maneira forma manhã tarde noite mundo""",
    "nl": """mensen persoon ding jaar tijd dag week maand uur minuut euro deel kant einde begin
    probleem vraag reden voorbeeld punt geval manier keer ochtend avond nacht""",
}
_BROAD = """city town community organization organisation group system program service resource
    area field challenge name"""
BROAD = frozenset(root(word, "en") for word in word_set(_BROAD))
"""English words that say too little alone: a "community center" is something."""
VAGUE_HAN = word_set(
    """覺得 觉得 認為 认为 可以 非常 希望 問題 问题 現在 现在 目前 時候 时候 任何 所有 一些 很多
    許多 许多 沒有 没有 不是 就是 這樣 这样 其實 其实 應該 应该 需要 必須 必须 如果 因為 因为
    所以 但是 而且 雖然 虽然 已經 已经 還是 还是 只是 或是 以及 進行 进行 造成 導致 导致 使用
    提供 表示 今天 本人 完全 一樣 一样 不同 知道 影響 影响 解決 解决 內容 内容 方式 情況 情况
    真正 根本 繼續 继续 有人 事情 東西 东西 部分 部份 類似 类似 明確 明确 自己 人們 人们 大家
    我們 我们 他們 他们 意見 意见 看法 想法 時間 时间 最近 本当 場合 全部 以上 以下 今後 一番"""
)


@cache
def vague_roots(code: str) -> frozenset[str]:
    """The roots of words that say nothing, in a language."""
    words = _ELSEWHERE.get(code)
    return frozenset(root(word, code) for word in words.split()) if words else _ENGLISH
