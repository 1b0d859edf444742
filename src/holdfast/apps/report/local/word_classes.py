"""English words that are no nouns, or hardly ever: they neither name a topic alone nor end a name.

Short lists of our own, for files too small to show by themselves how a word is used."""

from __future__ import annotations

from holdfast.apps.report.local.stop_words import word_set

_VERBS = word_set(
    """abolish accept accuse achieve act add address admit adopt afford agree allow apply argue
    arrive ask assault assume attack attend avoid ban be bear become begin believe belong
    blame boost borrow break bring build buy call care carry catch cause celebrate change
    cheat choose claim clean clear close collect combat come commit compare complain confirm
    connect consider continue contribute control convince cost count create criticize cut deal
    decide decrease defend demand deny depend deserve destroy develop die disagree discover
    discuss do drive eat educate elect eliminate embrace empower encourage end enforce engage
    enjoy ensure establish exist expand expect explain express face fail fear feel fight
    figure fill find finish fix focus follow force forget free fund gain get give go grow
    guess happen hate have hear help hide hire hold hope hurt identify ignore imagine impeach
    improve include increase inform insist invest involve join judge keep kill know lack learn
    leave let lie limit listen live look lose love maintain make march matter mean meet move
    need offer oppose organize overcome overturn own participate pass pay penalize perform
    persuade play prefer prepare prevent produce promote protect prove provide publish pull
    punish push put quit raise reach read realize receive recognize reduce refuse regulate
    reject rely remember remove repeal replace represent require resist respect respond
    restore return reveal revisit ride run save say see seek seem sell send serve set share
    show sit solve speak spend stand start stay stop strengthen struggle suck suffer suggest
    support survive take talk teach tell tend think thrive tolerate touch trust try turn
    understand unite update use value vote wait walk want watch wear win wish wonder work
    worry write"""
)
NOUNS_TOO = word_set(
    """act address attack ban boost break call care cause change claim control cost cut deal demand
    drive end fear fight figure focus force fund gain help hope lack lie limit love march need
    offer pass pay play raise respect return run share show stand start stop struggle support
    talk trust try turn use value vote walk win wish work worry assault abuse exchange
    increase decrease review access report vote result study order research program plan tax
    trade"""
)
MOSTLY_VERBS = word_set(
    """play help need fight talk try use run show stand start stop turn walk win wish worry lie love
    hope lack pass offer drive raise"""
)
"""Nouns, too, but behind another noun they say what it does: "kids play"."""
ADJECTIVES = word_set(
    """able absolute
    acceptable accountable accurate actual afraid aggressive alone angry appropriate
    available aware awful bad basic beautiful better big bigger boring brave brilliant broken
    busy careful cheap clean clear cold common complete complex concerned concise confident
    confused correct corrupt crazy criminal critical crucial cruel current dangerous dead decent
    deep democratic depressed desperate different difficult dirty disgusting divided due dumb early
    easy effective embarrassed empty entire equal essential evil exact excellent excited
    exciting expensive extreme fair false familiar famous fantastic fast federal few final
    financial fine first foreign formal former fortunate free frequent fresh friendly full
    fundamental funny future general generous global good great green guilty happy hard
    harmful healthy heavy helpful high higher honest horrible huge human humane hungry illegal
    immediate important impossible impressive inclusive independent individual innocent
    interested interesting international jealous kind large last late lazy legal likely little
    livable local long loose loud low lower lucky mad main major many massive mental mere
    middle military minor modern moral national natural necessary negative nervous new nice
    normal obvious old older only open ordinary other overwhelming own particular past patient
    peaceful perfect personal physical plain pleased political poor popular positive possible
    powerful practical pregnant presidential previous private probable professional
    progressive proper proud public pure quick quiet racist rare ready real realistic
    reasonable recent red regular relevant reliable religious renewable responsible rich
    ridiculous right rough sad safe same scared secure selfish senior sensible separate
    serious several severe sexual short sick significant silly similar simple single slow
    small smaller smart social sorry special specific standard stronger strong stupid subject
    successful sudden sufficient suitable super sure sustainable systemic technical terrible
    tired tough toxic transparent true typical ugly unable unacceptable unfair unhappy
    unhealthy unique universal unlikely unnecessary unsafe unusual upset urban useful useless
    black brown white
    usual valuable various vast violent visible vital vulnerable warm weak wealthy weird whole
    wide wild willing wise wonderful worse worst worth worthy wrong young younger longer
    shorter stronger weaker including regarding concerning"""
)
_ENDINGS = ("ed", "ly", "ous", "ful", "able", "ible", "ish", "less", "ive")
_NOUNS_DESPITE = word_set(
    """bed need seed weed speed feed breed deed family assembly supply july italy bully belly ally
    table vegetable cable mandible british english finish fish initiative incentive
    perspective alternative executive motive objective detective representative relative
    archive drive olive narrative directive collective conservative native monopoly rally
    anomaly fly jelly butterfly"""
)


_AUXILIARIES = word_set(
    """is are was were am be has have had do does did can could will would shall should may
    might must ought cannot it's that's there's he's she's what's who's i'm we're they're you're
    i've we've they've you've i'd we'd they'd you'd i'll we'll they'll you'll let's gonna gotta
    wanna needs need isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't
    shouldn't hasn't haven't hadn't ain't mustn't sucks rules matters"""
)
_IRREGULAR = word_set(
    """went came took made gave got saw said told thought felt left kept lost won knew grew began
    became brought bought built chose drove ate fell fought found forgot held hid hurt led lent
    meant met paid put ran sat sent showed shut sold spent spoke stood stole taught understood
    woke wore wrote turned"""
)


def is_finite(word: str) -> bool:
    """Whether a word can be what a subject does: an auxiliary, or a form of a verb."""
    if word in _AUXILIARIES or word in _IRREGULAR or word in _VERBS:
        return True
    stems = (word[:-1], word[:-2], f"{word[:-3]}y", word[:-2] + "e", word[:-3])
    return word.endswith(("s", "ed")) and any(stem in _VERBS for stem in stems)


_NOUNS_IN_ING = word_set(
    """housing funding training parking zoning policing counseling counselling building lighting
    schooling gerrymandering voting spending nursing farming mining shopping cycling warming
    banking drilling fracking lobbying bullying profiling trafficking recycling planning healing
    parenting mentoring wellbeing engineering manufacturing"""
)


def is_noun_in_ing(root: str) -> bool:
    return root in _NOUNS_IN_ING


def is_gerund(root: str) -> bool:
    """Whether a word is the form in -ing of a verb, and no noun of its own like "voting"."""
    if not root.endswith("ing") or root in _NOUNS_IN_ING:
        return False
    stem = root[:-3]
    return stem in _VERBS or f"{stem}e" in _VERBS or stem[:-1] in _VERBS


def is_verb(root: str) -> bool:
    """Whether a word is hardly ever anything but a verb."""
    return root in _VERBS - NOUNS_TOO


def may_be_verb(root: str) -> bool:
    return root in _VERBS


def is_adjective(root: str) -> bool:
    """Whether a word describes and does not name."""
    if root in ADJECTIVES:
        return True
    return len(root) > 4 and root.endswith(_ENDINGS) and root not in _NOUNS_DESPITE
