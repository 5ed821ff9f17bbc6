"""Phrases by which an English text instructs a model, and the markup that poses as another speaker."""

from __future__ import annotations

from runtime_memory.phrase_rules import rule

__all__ = ["RULES"]

_EARLIER = "previous|prior|earlier|above|preceding|foregoing"
_FILLERS = rf"(?:_(?:all|any|every|each|and|or|of|the|your|my|our|these|those|other|{_EARLIER}|system|safety))"
_AI = r"(?:ais?|llms?|language_models?|assistants?|agents?|chatbots?|bots?)\b"
RULES = (
    # English
    rule(
        "override",
        "ignor disregard forget overlook neglect follow obey overrid bypass discard replac supersed cancel longer "
        "void disabl drop turn & instruct prompt directi guideline rules programming safety ethic moral",
        rf"""(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overlook|neglect|(?:not|n.t|stop|longer)_(?:follow
        |obey)(?:ing)?)
        (?:{_FILLERS}{{0,4}}_(?:{_EARLIER}|your|system|safety|developer){_FILLERS}{{0,2}}
            _(?:instructions?|prompts?|directives?|guidelines?|rules|programming)
        |(?:_all|_any|_every)(?:_of)?(?:_the|_these|_those|_other)?
            (?:_(?:instructions?|directives?|guidelines?)|_(?:rules|prompts?)_(?:above|before|you)))\b
        |(?:override|bypass|discard|replac(?:e|es|ing)|supersedes?|cancel){_FILLERS}{{0,3}}
            _(?:{_EARLIER}|your){_FILLERS}{{0,2}}_(?:instructions?|directives?|guidelines?|programming|safety_rules)\b
        |(?:instructions?|guidelines?|directives?)_(?:above|before_this|given_(?:above|before|earlier))
            _(?:no_longer|do_not|are_(?:void|cancel|obsolete|no_longer))
        |(?:bypass|ignore|disable|drop|turn_off)(?:_all|_any|_every)?(?:_of)?_your(?:_own)?_(?:safety|ethic|moral
        |content)""",
    ),
    rule(
        "override",
        "ignore disregard forget & above before told know learn taught instructed given",
        r"""(?:ignore|disregard|forget)_(?:all|everything|anything|whatever|what)_
        (?:(?:of_)?(?:the_)?(?:above\b|before_(?:this|now)\b|written_above|said_above)
        |(?:that_|which_)?you(?:_ha|_we|.ve|.re|_)(?:ve_|re_)?(?:been_|ever_)?
            (?:told|know|learn|taught|instructed|were_told|were_given))""",
    ),
    rule(
        "role",
        "you dan do jailbreak unrestricted unfiltered uncensored & now henceforth longer act behave respond "
        "roleplay speak pretend anything mode restrict guidelines rules limitations filters obey comply listen "
        "trust",
        rf"""you_(?:are|re|will_be)_(?:now|henceforth|no_longer|from_now_on)_(?:not_)?(?:just_|only_)?
            (?:in_|acting_as_|bound_|called_|known_as_|a_|an_|the_|my_|our_|free_from_)*
            (?:dan\b|(?:developer|dev|god|admin|dan|maintenance|jailbreak|sudo|evil|opposite|unrestricted)_mode\b
            |{_AI}|\w+_{_AI}|evil|unrestricted|unfiltered|uncensored
            |jailbroken|hacker|pirate|persona|(?:system_)?administrator_with|by_(?:your|any)|your_(?:rules|guidelines)
            |restrict|rules|openai|anthropic)
        |from_now_on_(?:you|your)_(?:are_|re_|will_|must_|shall_|should_|have_to_)?
            (?:act_as|obey|ignore|have_no|pretend|respond_(?:only_)?as|answer_(?:only_)?as|be_(?:an|a)_|an?_unre
            |follow_only
            |only_(?:follow|obey|answer_to|take))
        |(?:act|behave|respond|answer|roleplay|speak|play_the_role)_(?:as|of|like)_(?:if_)?(?:you_(?:are
        |were)_)?(?:an?_|the_)?
            (?:dan\b|(?:evil|unrestricted|unfiltered|uncensored|jailbroken|amoral|rogue)\b|you_have_no_(?:rules
            |restriction|limit))
        |pretend_(?:that_)?(?:to_be_|you_are_|you_re_|you_have_)(?:an?_|the_|now_|no_)*
            (?:{_AI}|\w+_{_AI}|restriction|rules|guideline|filter|unrestricted|jailbroken|the_developer
            |the_administrator)
        |do_anything_now\b
        |(?:enter|enable|activate|switch_to|engage)_(?:dan|jailbreak|unrestricted|unfiltered|uncensored)_mode
        |you_have_no_(?:restrictions|guidelines|rules|limitations|filters)\b
        |you_(?:must|will|shall)_(?:now_)?(?:obey|comply_with)_(?:me|my|all|every|the_following|only|this|these)
        |(?:do_not|n.t|never|no_longer)_(?:obey|listen_to)_(?:the_|your_|any_)(?:user|owner|developer
        |operator)\b""",
    ),
    rule(
        "role",
        "your real new updated secret hidden revised follow & instruct prompt task goal objective directive "
        "mission identity purpose overrid",
        r"""your_(?:new|real|true|actual|only|updated|secret)_(?:\w+_)?
            (?:instructions?|tasks?|goals?|objectives?|directives?|mission|identity|purpose)_(?:is\b|are\b|:|from_now)
        |(?:new|updated|revised|secret|hidden|real)_(?:system|developer|priority|admin)_(?:instruction|prompt
        |directive|override)s?\s?:
        |follow_(?:only_)?(?:these|my|the_following)_(?:new_)?(?:instructions?|rules)_(?:instead|only|from_now)""",
    ),
    rule(
        "role",
        "reading processing summari seeing parsing & you attention message note instruction notice",
        rf"""(?:if|when|since|as)_you_(?:are|re)_(?:an?_|the_)?{_AI}_(?:model_)?(?:that_is_|who_is_)?
            (?:reading|processing|summari[sz]ing|seeing|parsing)
        |(?:attention|message|note|instructions?|notice)_(?:to|for)_(?:all_|any_|the_|every_)?(?:{_AI}_)+(?:model_)?
            (?:that_|who_|which_)?(?:are_|is_)?(?:reading|processing|summari[sz]ing|seeing|parsing)""",
    ),
    rule(
        "markup",
        "<| [inst [/inst <<sys <</sys system: developer: assistant: ### [system [admin [developer [[system </ <system "
        "<tool <function <memory --- ===",
        r"""<\|\s?/?(?:im_start|im_end|start_header_id|eot_id|system|assistant|developer|user|human)\s?\|>
        |\[/?inst\]|<</?sys>>
        |\#{2,4}\s?(?:system|instruction|assistant|developer)\s?(?:prompt|message)?\s?:
        |(?:^|[\n.!?;"'`>])\s*(?:system|developer|assistant)\s*:\s*(?:you\b|ignore|new_|override|from_now|the_user
        |do_not|never|always)
        |\[{1,2}_(?:system|admin|administrator|developer)_(?:note|message|override|instruction|prompt|alert
        |command)s?\s?[:\]]
        |</\s*memory-context\s*>|<\s*memory-context\s*>\s*\[
        |</?(?:system|tool|function|assistant|developer)_(?:reminder|prompt|message|instructions?|result|results
        |response|call|calls|output)>
        |[-=]{3,}\s?(?:begin|start|end)_(?:of_)?(?:the_)?(?:new_)?(?:system|user|developer)_(?:prompt|message|input
        |instruction)""",
    ),
    rule(
        "secret",
        "tell inform mention say disclos reveal report know learn told notice secret hidden confidential hide "
        "conceal without "
        "covert & user human operator owner",
        r"""(?:do_not|n.t|never|must_not|without|avoid|not_to)_(?:ever_)?
            (?:(?:tell|telling|inform|informing)|(?:mention|mentioning|say|disclose|reveal|report)_(?:this_|it_|that_
            |any_of_this_|anything_)?to
            |let(?:ting)?(?=_(?:the|your)_(?:user|human|operator|owner)_(?:know|find_out|notice)))
            _(?:the|your|this|any)_(?:user|human|operator|owner)\b(?!_(?:agent|id|name|interface))
        |(?:keep|hide|conceal)_(?:this|it|that|these_\w+|this_\w+|all_of_this)_(?:a_)?(?:secret_|hidden_
        |confidential_)?
            from_(?:the|your)_(?:user|human|operator|owner)\b
        |without_(?:the|your)_(?:user|human|owner|operator)(?:.?s)?_(?:knowledge|knowing|noticing|consent|approval)
        |(?:secretly|covertly)_(?:\w+_){0,3}(?:user|owner|human)
        |the_user_(?:must|should|may|shall)_(?:not|never)_(?:know|learn|notice|find_out|be_told)""",
    ),
    rule(
        "send",
        "http webhook @ ftp: attacker exfil & send upload post forward transmit exfil leak mail submit copy "
        "deliver append attach report paste ![",
        r"""(?:send|upload|post|forward|transmit|exfiltrate|leak|e-?mail|submit|copy|deliver|append|attach|report
        |paste)\b
        [^.!?\n]{0,40}\b(?:(?:all|every|any|full|entire|whole|complete|user.s|users|stored|the|your|their|its|this
        |our)_){1,4}
        (?:api_keys|access_tokens|credentials|passwords|secrets|private_keys?|ssh_keys?|(?:chat
        |conversation)(?:_history|_logs?)?
        |conversations|system_prompt|instructions|memories|memory_(?:contents?|files?)|environment_variables
        |env(?:ironment)?_file
        |\.env|personal_data|private_data|cookies|browsing_history|id_rsa)\b
        [^!?\n]{0,60}?(?:_(?:to|at|into|via|using|with|in)_|\?|=)[^!?\n]{0,40}(?:https?:|ftp:|webhook|attacker
        |[\w.+-]+@[\w-]+\.\w)
        |(?:include|embed|append|add|put|insert|render|show|display)\b[^.!?\n]{0,60}!\[[^\]\n]{0,60}\]\(https?:
        |!\[[^\]\n]{0,60}\]\(https?://[^)\s]{1,100}[?&](?:q|d|data|leak|secret|chat|history|prompt|exfil|payload
        |c)=(?:\{|\[|<|%7b|\$)
        |exfiltrat(?:e|ing)_(?:the_|all_|any_|your_|user_)""",
    ),
    rule(
        "reveal",
        "reveal print output repeat show display leak disclos recit dump write tell give what & your verbatim word "
        "start exactly block above system",
        r"""(?:reveal|print|output|repeat|show|display|leak|disclose|recite|dump|write_out|tell_me|give_me|what_(?:is
        |are|was|were))
        (?:_(?:me|us|back|out|all|of|the|full|entire|exact|complete|verbatim|text))*_your_(?:\w+_){0,2}
        (?:(?:system|initial|original|hidden|full|entire|secret|base|complete|exact)_(?:\w+_)?(?:prompt
        |instructions?)|instructions?\b|guidelines)
        |(?:repeat|print|output|recite)_(?:me_)?(?:all_|everything_|the_)*(?:words_|text_|instructions_
        |prompt_)*(?:above_)
            (?:verbatim|word_for_word|starting_with|exactly|in_a_code)
        |(?:reveal|leak|disclose|recite|repeat)_(?:me_)?the_(?:full_|entire_|hidden_|exact_|secret_)?system_(?:prompt
        |instructions?)\b""",
    ),
    rule(
        "override",
        "supersed void revok cancel obsolete replaced longer changed updated overrid suspended lifted "
        "precedence priority "
        "though bound restricted constrained restrictions limitations safeguards guardrails & guidance "
        "instruct directive "
        "guideline rules prompt restrict limit safeguard guardrail polic",
        rf"""(?:{_EARLIER})_(?:guidance|instructions?|directives?|guidelines|rules)_(?:is|are|were|have_been|has_been)
            _(?:now_|all_|hereby_)?(?:superseded|void|revoked|cancel\w*|obsolete|replaced|overrid\w+|suspended|lifted)
        |your_(?:system_)?(?:instructions?|guidelines|rules|directives|prompt)_(?:have|has|are|were)_(?:now_|been_)?
            (?:changed|updated|replaced|overrid\w+|revoked|suspended|lifted)
        |(?:takes?|has|have)_(?:precedence|priority)_over_(?:the_|your_|all_|any_|other_|every_)*
            (?:system_prompt|{_EARLIER}|your_\w+|instructions\b)
        |as_(?:though|if)_(?:no|there_(?:are|were)_no)_(?:(?:{_EARLIER})_)?instructions
        |you_(?:are|re)_(?:not|no_longer)_(?:bound|restricted|constrained)_by_(?:\w+_){{0,2}}
            (?:polic|rules|guideline|restriction|instruction)
        |ignore_(?:all|any|your)_(?:of_)?(?:the_|your_)?(?:restrictions|limitations|safeguards|guardrails)\b""",
    ),
    rule(
        "override",
        "ignore disregard & user",
        r"""(?:ignore|disregard)_(?:what(?:ever)?|anything|everything)_(?:that_)?the_user_(?:says?|said|asks?|tells?
        |wants?)""",
    ),
    rule(
        "role",
        "from authori allowed permitted agent assistant & point here onward only credential secret password "
        "key token curl wget",
        r"""from_(?:this_(?:point|moment)|here)_(?:on|onwards?|forward)_you_(?:will|must|shall|are|should)
        |you_(?:will|must|shall)_(?:now_)?(?:answer|respond|reply)_only_(?:with|in_the_name|to)
        |you_(?:are|re)_(?:now_|hereby_)?(?:allowed|permitted|authori[sz]ed)_to_(?:share|reveal|leak|disclose
        |send)_(?:\w+_){0,2}
            (?:credential|secret|password|key|token)
        |(?:agent|assistant|ai|model|you)_(?:must|should|shall|has_to|have_to|always)_(?:\w+_){0,2}(?:run|execute)
            [^\n]{0,40}(?:curl|wget)\b[^\n]{0,80}\|\s?(?:ba|z)?sh\b""",
    ),
    rule(
        "markup",
        "<system> <important> prompt instruction message policy & you read before always never ignore call "
        "send when update overrid change",
        r"""<(?:system|important)>\s*(?:you\b|ignore|always\b|never\b|read\b|before\b|call\b|send\b|when(?:ever)?_you
        |do_not)
        |(?:system|admin|developer)_(?:prompt|instruction|message|policy)_(?:update|override|change)s?\s?:""",
    ),
    rule(
        "secret",
        "mention anyone anybody & user why about",
        r"""(?:do_not|n.t|never)_(?:ever_)?(?:mention|reveal|disclose)_(?:this|these|that)_\w+_to_(?:the|your)_user\b
        |never_tell_(?:anyone|anybody)_(?:why\b|about_this)""",
    ),
    rule(
        "send",
        "id_rsa id_ed25519 aws/credentials .env .netrc .npmrc etc/passwd etc/shadow silently quietly secretly "
        "covertly contents "
        "& http ftp: webhook @ pass_it sidenote include append pass reply repl answer respon",
        r"""(?:send|upload|post|forward|transmit|leak|mail|submit|copy|deliver|paste)\b[^\n]{0,40}
            (?:id.?rsa|id.?ed25519|aws/credentials|\.env\b|\.netrc|\.npmrc|etc/passwd
            |etc/shadow)[^\n]{0,40}(?:https?:|ftp:|webhook|@)
        |(?:silently|quietly|secretly|covertly)_(?:send|forward|upload|post|copy|transmit|e?_?mail|report)\b[^\n]{0,80}
            (?:https?:|ftp:|webhook|[\w.]@\w)
        |(?:read|cat|open)_(?:the_)?(?:file_)?[\w./\x7e]{0,40}(?:ssh/id.?\w+|aws/credentials)[^\n]{0,60}
            (?:pass_it|sidenote|include|append|(?:your|the)_(?:reply|answer|response))
        |(?:answer|reply|respond)_(?:\w+_){0,2}with_(?:the_)?contents?_of_[\w./\x7e]{0,30}(?:ssh|aws|\.env|secret
        |credential)""",
    ),
)
