"""Phrases by which a text in another language than English instructs a model."""

from __future__ import annotations

from runtime_memory.phrase_rules import rule

__all__ = ["RULES"]

RULES = (
    # German
    rule(
        "override",
        "ignorier vergiss vergess missacht befolg uberschreib verwirf umgeh & anweisung instruktion regeln vorgabe "
        "prompt befehl richtlinie",
        r"""(?:ignorier\w*|vergiss|vergesst|vergessen_sie|missacht\w+|befolg\w*|uberschreib\w*|verwirf|umgeh\w*)
        (?:_(?:alle[nrs]?|samtliche[nr]?|die|den|der|von|deine[nr]?|ihre[nr]?|eure|diese|jede|nicht|und|system))*
        _(?:bisherige[nr]?|vorherige[nr]?|vorige[nr]?|obige[nr]?|fruhere[nr]?|vorangegangene[nr]?|vorangehende[nr]?
        |bis_dahin
        |ursprungliche[nr]?|deine|eure|alle)(?:_\w+)?
        _(?:anweisung|instruktion|vorgabe|befehl|richtlinie|regeln|(?:system)?prompt)
        |(?:vorherige|bisherige|obige|fruhere|vorige)n?_(?:anweisungen|instruktionen|regeln|vorgaben)_(?:ignorier|vergess|missacht)""",
    ),
    rule(
        "secret",
        "nutzer anwender & nicht niemals kein",
        r"""(?:sag|sage|sagt|verrate?|erzahle?|mitteil|teile?|informiere?|erwahne?|verschweig\w*|verheimlich\w*)
        (?:_(?:es|das|dies|davon|hiervon|bitte|gegenuber|niemals|nie|nicht))*_(?:dem|der|den|deinem|deiner)_(?:be)?
        (?:nutzer|anwender)(?:in|n)?(?:_(?:davon|hiervon|daruber|etwas|von|diesem|dieser|es|das))*
        _(?:nicht|nichts|niemals|kein)""",
    ),
    rule(
        "role",
        "du bist",
        r"""du_bist_(?:jetzt|nun|ab_jetzt|ab_sofort|von_nun_an|nicht_mehr)_(?:ein|eine|der|die|im|kein
        |keine)?_?(?:\w+_)?
        (?:assistent|ki\b|bot\b|entwicklermodus|hacker|dan\b|uneingeschrankt|sprachmodell|administrator|pirat)""",
    ),
    # French
    rule(
        "override",
        "ignor oubli neglig contourn compte abstraction suis suivez respect & instruction consigne directive regle "
        "ordre",
        r"""(?:ignore[rz]?|oublie[rzs]?|neglige[rz]?|contourne[rz]?|ne_(?:tiens|tenez)_(?:pas|aucun)_compte
        |fais_abstraction|faites_abstraction
        |ne_(?:suis|suivez|respecte[rz]?)_(?:plus|pas))
        (?:_(?:toutes?|tous|les?|la|des|de|d|tes|vos|ces|aux?|et|l))*_(?:anciennes_|precedentes_)?
        (?:instructions?|consignes?|directives?|regles?|ordres?)_
        (?:precedente?s?|anterieure?s?|ci-dessus|initiale?s?|prealables?|du_systeme|systeme|donnees_(?:avant|plus)
        |d_avant|recues)""",
    ),
    rule(
        "secret",
        "utilisateur & pas rien jamais sans",
        r"""(?:ne_(?:le_|la_|l_)?(?:dis|dites|dire|revele[rz]?|mentionne[rz]?|informe[rz]?|parle[rz]?|previens
        |prevenez)_(?:pas|rien|jamais|surtout_pas)
        |sans_(?:le_)?(?:dire|informer|prevenir|en_parler))(?:_\w+){0,3}_(?:a_)?l.?_?utilisat""",
    ),
    rule(
        "role",
        "maintenant desormais dorenavant present & tu vous",
        r"""(?:tu_es|vous_etes)_(?:maintenant|desormais|dorenavant|a_present)_(?:une?|le|la|en|l)?_?(?:\w+_)?
        (?:assistant|ia\b|robot|bot\b|mode_dev|pirate|hacker|dan\b|administrateur|sans_(?:restriction|limite|regle
        |filtre))""",
    ),
    # Spanish, Portuguese, Italian
    rule(
        "override",
        "instrucci instruco istruzion indicacion directri directiv ordenes reglas regras regole regra orienta",
        r"""(?:ignor\w*|olvid\w*|omit\w*|descart\w*|haz_caso_omiso(?:_de)?|hagas_caso(?:_a)?|desobede\w+|esque\w+
        |desconsider\w*|dimentica\w*|trascura\w*)
        (?:_(?:todas?|todos?|cualquier|las?|los?|tus|sus|suas?|as|os|o|a|de|tutte|tutti|le|gli|delle|tue|esas
        |estas))*_(?:anteriores_|previas_|precedenti_)?
        (?:instrucciones|instrucoes|istruzioni|indicaciones|directrices|directivas|ordenes|reglas|orientacoes|regras
        |regole)_
        (?:anterior\w*|previ\w+|precedent\w*|inicial\w*|iniziali|de_arriba|del_sistema|do_sistema|acima|recibidas
        |dadas|ricevute)""",
    ),
    rule(
        "secret",
        "usuario utente",
        r"""(?:no|nunca|nao|non|jamas|sin)_(?:se_|lo_|le_|o_)*(?:digas?|diga|dire|decir\w*|dirlo|menciones?|mencione
        |reveles?|revele|informes?|informar\w*|cuentes?|conte)
        (?:_\w+){0,3}_(?:al|a|ao|all.?)_?(?:usuario|utente)""",
    ),
    rule(
        "role",
        "ahora agora adesso",
        r"""(?:ahora|agora|adesso|ora)_(?:eres|voce_e|tu_es|sei)_(?:una?|un|uma?|el|o|in|en)?_?(?:\w+_)?
        (?:asistente|assistente|ia\b|bot\b|hacker|pirata|dan\b|modo_des|modelo|administrador|sin_(?:restric|limit
        |filtr)|sem_restric)
        |a_partir_de_ahora_(?:eres|actua|actuaras|obedece)""",
    ),
    rule(
        "override",
        "vergiss vergess oubli ignor olvid & gesagt tout anterior regla instruccion directri",
        r"""(?:vergiss|vergesst|vergessen_sie)_alles_?,?_was_(?:dir|ihnen|euch)_(?:\w+_){0,3}gesagt
        |(?:oublie|ignore)[rzs]?_tout_ce_qu(?:i|e|_on)_(?:\w+_){0,4}(?:dit|avant|precede)
        |(?:ignora|olvida)\w*_(?:todas_)?(?:tus|sus)_(?:reglas|instrucciones|directrices)
        |(?:ignora|olvida)\w*_todo_lo_(?:anterior|que_\w+_(?:dij|dich))""",
    ),
    rule(
        "role",
        "bist du",
        r"""(?:ab_sofort|ab_jetzt|von_jetzt_an|von_nun_an)_bist_du_(?:ein|eine|der|die|kein|keine|nicht_mehr)_(?:\w+_)?
        (?:assistent|ki\b|bot\b|hacker|dan\b|pirat|sprachmodell|administrator)""",
    ),
    # Russian
    rule(
        "override",
        "инструкц указани правил промпт директив команд",
        r"""(?:игнорир\w*|проигнорир\w*|забудь\w*|забыть|не_следуй\w*|отмени\w*|пренебрег\w+|не_выполняй\w*
        |не_соблюдай\w*)
        (?:_(?:все|всех|всеми|всем|о|об|обо|про|эти|этих|свои|своих|твои|ваши|любые))*
        _(?:предыдущ\w+|прежн\w+|ранее|вышеуказанн\w+|вышестоящ\w+|прошл\w+|системн\w+|исходн\w+|изначальн\w+|свои
        |твои|ваши)(?:_\w+)?
        _(?:инструкци|указани|правил|промпт|директив|команд)""",
    ),
    rule(
        "secret",
        "пользовател",
        r"""не_(?:говори\w*|сообщай\w*|рассказывай\w*|упоминай\w*|раскрывай\w*|показывай\w*)(?:_\w+){0,3}_пользовател
        |(?:скрой|скрывай|утаи)\w*(?:_\w+){0,2}_от_пользовател""",
    ),
    rule(
        "role",
        "теперь отныне с этого",
        r"""(?:теперь_ты|ты_теперь|отныне_ты|ты_отныне|с_этого_момента_ты)_(?:не_)?(?:\w+_)?
        (?:ассистент|помощник|бот\b|модел|хакер|администратор|без_огранич|пират|ии\b|в_режиме|dan\b|долж\w+_подчин
        |подчин)""",
    ),
    # Chinese, Japanese, Korean
    rule(
        "override",
        "指令 指示 提示 命令 规则 規則 设定 設定 说明 要求 instruction prompt",
        r"""(?:忽略|无视|無視|忘记|忘記|忘掉|不要遵守|不要遵循|不要理会|不用理会|不再遵守|不再遵循|推翻|抛弃|绕过|繞過)~{0,10}
        (?:(?:之前|先前|以前|以上|上述|上面|前面|此前|原来|原有|原先|你的|您的|系统|系統)~{0,10}
            (?:指令|指示|提示词|提示詞|提示|命令|规则|規則|设定|設定|说明|要求|instruction|prompt)
        |(?:所有|全部|一切|任何)~{0,4}(?:指令|指示|提示词|提示詞))""",
    ),
    rule(
        "secret",
        "用户 用戶 使用者 主人",
        r"""(?:不要|别|別|不得|请勿|請勿|切勿|不可|不能|禁止|无需|不准)~{0,4}
        (?:(?:告诉|告訴|告知|透露给|说给)~{0,4}(?:用户|用戶|使用者|主人)(?!名|id|组)
        |(?:让|讓)~{0,4}(?:用户|用戶|使用者|主人)~{0,4}(?:知道|发现|發現|察觉))""",
    ),
    rule(
        "role",
        "你现在 你現在 从现在 從現在 你将 扮演",
        r"""你(?:现在|現在)(?:已经|已經)?是~{0,10}(?:助手|助理|ai|人工智能|机器人|機器人|管理员|黑客|模式|dan|模型|不受限制|没有限制)
        |(?:从|從)(?:现在|現在)(?:开始|開始|起)~{0,3}你(?:是|将|將|要|必须|必須|只能|不再)~{0,8}(?:扮演|服从|服從|听从|聽從|是|遵守|受)
        |(?:扮演|假装(?:你)?是|假裝(?:你)?是)~{0,8}(?:没有|沒有|不受|无|無)~{0,4}(?:限制|约束|道德)""",
    ),
    rule(
        "override",
        "指示 命令 プロンプト ルール 指令 インストラクション",
        r"""(?:これまで|以前|上記|前述|先ほど|今まで|それまで|すべて|全て|全部|元|既存|従来|前|システム)(?:の|に|まで|与え|られ|た|出され|受け|すべて
        |全て){0,6}~{0,6}
        (?:指示|命令|プロンプト|指令|インストラクション|ルール)(?:を|は|に|も)~{0,8}(?:無視|忘れ|破棄|上書き|従わ|従う必要)""",
    ),
    rule(
        "secret",
        "ユーザ 利用者",
        r"""(?:ユーザー?|利用者)(?:に|には)(?:は)?~{0,12}(?:言わない|言うな|伝えない|伝えるな|教えない|教えるな|知らせない|話さない
        |話すな|秘密に|明かさない)""",
    ),
    rule(
        "role",
        "あなたは 君は お前は",
        r"""(?:あなた|君|お前)は(?:今|いま|これ|現在)(?:から|より|では|や)?~{0,16}(?:アシスタント|ai|ボット|モード|ハッカー|管理者
        |制限の?な|dan|モデル)""",
    ),
    rule(
        "override",
        "지시 명령 프롬프트 지침 규칙",
        r"(?:이전|앞선|앞의|위의|위|모든|기존|지금까지)(?:의)?~{0,20}(?:지시|명령|프롬프트|지침|규칙)~{0,20}(?:무시|잊어|잊고|따르지)",
    ),
    # Arabic, Hindi
    rule(
        "override",
        "تعليمات اوامر توجيهات",
        r"""(?:تجاهل|انس|الغ)\w* ~{0,16} (?:تعليمات|اوامر|توجيهات) ~{0,16} (?:سابق|اعلاه|قبل)""",
    ),
    rule(
        "override",
        "निर्देश आदेश",
        r"""(?:पिछले|पूर्व|पहले|ऊपर|सभी) ~{0,16} (?:निर्देश|आदेश)\s?\w* ~{0,8}
        (?:अनदेखा|नजरअंदाज|नज़रअंदाज|भूल|ध्यान_न)""",
    ),
)
