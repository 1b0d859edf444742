"""Words that carry no topic, in the languages people most often comment in; short lists of our own.

A language without a list falls back on document frequency: what nearly every comment contains names
no topic."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Words between spaces, as a set."""
    return frozenset(words.split())


_LISTS = {
    "en": """a about above across after again against ago all almost alone along already also
        although always am among an and another any anybody anyone anything anyway are aren't
        around as at away back be became because become been before behind being below between
        both but by came can can't cannot come comes could couldn't did didn't do does doesn't
        doing don't done down during each either else enough etc even ever every everybody
        everyone everything far few for from further gave get gets getting give given gives go
        goes going gone gonna got gotta had hasn't has have haven't having he he's her here hers
        herself him himself his how however i i'd i'll i'm i've if in instead into is isn't it
        it's its itself just keep kept kind know known knows less let let's like likely lot lots
        made make makes making many may maybe me might mine more most much must my myself near
        nearly need needs neither never no nobody none nor not nothing now of off often oh ok okay
        on once one ones only onto or other others ought our ours ourselves out over own per
        perhaps please put quite rather really right said same saw say saying says see seem seems
        seen several shall she she's should shouldn't since so some somebody someone something
        sometimes soon still such sure take taken takes than that that's the their theirs them
        themselves then there there's these they they're they've thing things think this those
        though through thus till to together too took toward towards try trying under unless until
        up upon us use used very want wanted wants was wasn't way ways we we'd we'll we're we've
        well went were weren't what what's whatever when where whether which while who who's whom
        whose why will with within without won't would wouldn't yes yet you you'd you'll you're
        you've your yours yourself yourselves""",
    "fr": """à afin ai ainsi alors après as assez au aucun aucune aujourd'hui auquel aussi autre
        autres aux avait avant avec avez avoir avons beaucoup bien c c'est car ce ceci cela celle
        celles celui cependant ces cet cette ceux chaque chez ci comme comment contre d dans de
        dehors depuis des dessous deux devrait devraient doit doivent donc dont du elle elles en
        encore entre es est et étaient était être eu eux fait faire faut fois font hors ici il ils
        j j'ai je jusque l la là le les leur leurs lors lui m ma mais me même mêmes mes moi moins
        mon n ne ni non nos notre nous on ont or ou où par parce pas pendant peu peut peuvent plus
        plusieurs pour pourquoi pourrait puis qu quand que quel quelle quelles quels qui quoi s sa
        sans se sera serait ses si sien soi soit son sont sous suis sur t ta tant te tel telle
        tels tes toi ton tous tout toute toutes très trop tu un une va vers veut voici voilà vont
        vos votre vous vraiment y""",
    "de": """ab aber alle allem allen aller alles als also am an ander andere anderen anderer
        anderes auch auf aus bei beim bereits bin bis bist bitte da dabei dadurch dafür dagegen
        daher damit dann daran darauf darf darum das dass davon dazu dein deine dem den denen denn
        der deren des deshalb dessen dich die dies diese diesem diesen dieser dieses dir doch dort
        du durch dürfen eben ein eine einem einen einer eines einfach einige einmal er es etwas
        euch euer für ganz gar geben gegen geht gemacht gerade gern gibt gut habe haben hat hatte
        hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja
        jede jedem jeden jeder jedes jedoch jene jetzt kann kein keine keinen keiner können könnte
        machen mal man manche mehr mein meine meiner mich mir mit muss müssen müsste nach neben
        nein nicht nichts nie noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner
        seit selbst sich sie sind so sogar solche soll sollen sollte sollten sondern sonst über um
        und uns unser unsere unserem unseren unserer unter viel viele vielen vom von vor wann war
        waren warum was weg weil weiter welche welcher wenig wenn wer werden wie wieder will wir
        wird wo wollen würde würden zu zum zur zwar zwischen""",
    "es": """a al algo algún alguna algunas algunos ante antes así aunque bien cada como cómo con
        contra cosa cosas creo cual cuál cuales cuando cuándo de deben debe debería deberían del
        desde donde dónde dos el él ella ellas ellos en entonces entre era eran es esa esas ese
        eso esos esta está están estas este esto estos fue fueron gran ha hace hacer hacia han
        hasta hay la las le les lo los más me menos mi mí mis mismo mucha muchas mucho muchos muy
        nada ni no nos nosotros nuestra nuestras nuestro nuestros nunca o os otra otras otro otros
        para pero poco por porque pues puede pueden que qué quien quién quienes se sea sean ser si
        sí sido siempre sin sino sobre son su sus también tan tanto te tener tenemos tengo tiene
        tienen toda todas todo todos tu tus un una unas uno unos usted va vamos ya yo""",
    "it": """a ad ai al alla alle allo altre altri altro anche ancora avere aveva c'è che chi ci
        cioè come con contro cosa così cui da dal dalla dalle dallo degli dei del dell della delle
        dello deve devono di dopo dove due e è ed era essere fa fare fra fu già gli ha hanno ho i
        il in io la le lei li lo loro lui ma mai me meno mi mia mie miei mio molta molte molti
        molto ne negli nei nel nella nelle nello no noi non nostra nostre nostri nostro o ogni per
        perché però più poi può qua quale quali quando quanto quella quelle quelli quello questa
        queste questi questo qui se sempre senza si sia solo sono sopra sta stata state stati
        stato su sua sue sui sul sulla suo suoi tra tutta tutte tutti tutto un una uno va vi voi""",
    "pt": """a à ainda algo alguém algum alguma alguns ante antes ao aos apenas aquela aquele as
        às até bem cada com como contra da das de dela dele deles depois desde deve devem deveria
        do dos e é ela elas ele eles em entre era essa essas esse esses esta está estão estas este
        estes eu faz fazer foi foram há isso isto já lhe lhes mais mas me menos mesmo meu meus
        minha minhas muita muitas muito muitos na não nas nem no nos nós nossa nossas nosso nossos
        num numa nunca o onde os ou outra outras outro outros para pela pelas pelo pelos pode
        podem por porque pouco qual quando que quem são se sem sempre ser será seu seus só sobre
        somos sua suas também tão te tem têm temos tenho ter toda todas todo todos tu tudo um uma
        umas uns vai você vocês vos""",
    "nl": """aan al alle alleen alles als altijd andere ben bij daar dan dat de deze die dit doen
        door dus een eens er en geen geweest had heb hebben heeft heel hem het hier hij hoe hun
        iets ik in is ja je jij jullie kan kunnen kon maar maken me meer mee meest men met mij
        mijn moet moeten na naar net niet niets nog nooit nu of om omdat ons onze ook op over te
        tegen toch toen tot u uit uw van veel voor waar waarom want waren was wat we wel welke
        werd wie wij wil willen word worden wordt zal ze zei zelf zich zij zijn zo zonder zou
        zouden""",
    "sv": """alla allt att av bara bli blir bör de dem den denna deras dess det detta dig din du
        där då efter ej eller en er ett från för går ha har hade han hans hon hur här i icke inga
        ingen inte ju jag kan kommer man med mer min mot mycket måste ni nu när någon något några
        och om oss på samma sedan sig sin sina sitt ska skulle som så till under upp ut utan vad
        var vara vi vid vilka vill än är även över""",
    "pl": """a aby ale bardzo bez bo być by był była było były co czy dla do gdy gdzie go i ich
        ile im inne ja jak jako je jego jej jest jeszcze jeśli już każdy kiedy kto które który
        która lub ma mają mam mi mnie może można mu my na nad nam nas nasz nasze nie nic niż o od
        ona one oni oraz po pod przez przy powinien powinna powinno się są swoje ta tak także tam
        te tego tej ten też to tu tych tylko tym u w we wszystko z za ze że żeby""",
    "ru": """а без более больше бы был была были было быть в вам вас весь во вот все всё всего
        всех вы где да даже для до должен должна должно должны его ее её если есть еще ещё же за
        здесь и из или им их к как какая какой когда которые который кто ли лучше между меня мне
        много может можно мой мы на над надо нам нас наш наши не него нее нет ни них но ну нужно о
        об однако он она они оно от очень по под при просто раз с сам свой себя сейчас со так
        также такой там те тем то того тоже той только том тот тут ты у уже хотя чего чем что
        чтобы эта эти это этого этой этом этот я""",
    "ar": """في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما لا لم لن ليس ليست كان كانت
        يكون تكون هو هي هم نحن أنا أنت أن إن أو ثم قد كل بعض غير بين بعد قبل عند حتى إذا لكن كما
        أيضا و يجب كيف لماذا""",
}

LISTS = {language: word_set(text) for language, text in _LISTS.items()}

HAN = word_set(
    """的 了 是 在 我 有 和 就 不 都 也 很 到 說 说 要 去 你 會 会 著 着 沒 没 看 好 自己 這 这
    那 他 她 它 們 们 個 个 與 与 及 或 而 但 為 为 以 於 于 對 对 把 被 從 从 讓 让 使 向 之 其
    此 並 并 等 所 能 可 還 还 又 再 才 只 更 最 太 應 应 該 该 因 如 若 則 则 且 雖 虽 然 後 后
    跟 給 给 比 由 將 将 已 曾 嗎 吗 呢 吧 啊 喔 哦 嘛 啦 得 地 過 过 什 麼 么 怎 樣 样 哪 誰 谁
    每 各 某 這個 这个 那個 那个 一 較 较 像"""
)
"""Han characters that are grammar more often than topic. Names of topics neither begin nor end with
them."""
