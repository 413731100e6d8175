"""Keep secrets and control characters out of everything that leaves the process.

One function for text that people read (`mask`), one for names that become labels (`clean`). Pure,
safe on any thread; text is cut before it is searched, so that a huge exception costs no more than a
small one. Patterns are compiled on first use: together they take 20 ms, and most text needs none of them.
"""

from __future__ import annotations

import re
from functools import cache
from string import ascii_letters, digits
from typing import Any
from urllib.parse import unquote

MASK = "***"
LONGEST_TEXT = 16 * 1024
LONGEST_NAME = 200
_LONGEST_SECRET = 2048  # with what makes it known, such as the host after a password
_ENCODED = 3  # times that a text may have been percent-encoded

_FLAGS = re.IGNORECASE | re.VERBOSE

_QUOTE = r"\\{0,3}['\"]"  # it may be escaped, in JSON inside of JSON
_COOKIE = r"[^\s;,'\"\]=]{1,128}(?:=(?:\\{0,3}\"(?![\s,}\]])[^\"\r\n;]{1,4096}\"|[^\s;,'\"\]\\]*))?"
_ADDRESS = r"[a-z][a-z0-9+.\-]{0,24}://"
_HOST = r"(?:[\w.\-]{1,255}|\[[\w:.%]{2,64}\])(?::\d+)?(?:[/?\#,;\s'\"\])}]|\Z)"
_PART = r"[^\s/@'\"\]]{0,256}(?:['\"\]](?![\s,;.:&()}\]'\"\\>]|\Z)[^\s/@'\"\]]{0,256}){0,8}"
_PORT = r"\d{2,5}[;?]"  # and no password: jdbc:sqlserver://host:1433;user=etl@host

# Each pattern keeps the groups `before` and `after` and loses what is between them. A text is written
# by others and may be made to be slow: whatever repeats is bounded, or can't fail afterwards. What stands
# first are words of which each match has one, in lower case: a text without them is not searched.
_PATTERNS = tuple(
    (words.split(), pattern)
    for words, pattern in (
        # -----BEGIN PRIVATE KEY----- … -----END PRIVATE KEY-----
        (
            "-----begin",
            r"(?P<before>-----BEGIN\ [A-Z ]{0,32}PRIVATE\ KEY(?:\ BLOCK)?-----)(?s:.)*?(?P<after>-----END\ [A-Z ]{0,32}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)",
        ),
        # scheme://user:password@ without a /: also with an @ in the user or the password, and with quotes or
        # brackets in the password that don't end the address
        (
            "://",
            rf"(?P<before>\b{_ADDRESS}[^\s:/?\#'\"\[\]]{{0,128}}:)(?!{_PORT})(?:{_PART}@){{0,3}}{_PART}(?P<after>@)",
        ),
        # scheme://user:password@host, also with an @ or a / in the password
        (
            "://",
            rf"(?P<before>\b{_ADDRESS}[^\s:/?\#@'\"\[\]]{{0,128}}:)(?!//|{_PORT})(?=[^\s'\"\[\]]{{1,256}}@)(?:[^\s'\"\[\]@]{{0,256}}@){{0,3}}?[^\s'\"\[\]@]{{0,256}}(?P<after>@(?={_HOST}))",
        ),
        # https://token@host
        (
            "://",
            r"(?P<before>\bhttps?://)(?=[^\s:/?\#@'\"\[\]]{1,256}@)[^\s:/?\#@'\"\[\]]{1,256}(?P<after>@[\w\[${<%])",
        ),
        # jdbc:oracle:thin:user/password@host, "user"/"password"@host
        (
            "jdbc:oracle:",
            r"(?P<before>\bjdbc:oracle:\w{1,16}:\"?[^\s/'\"]{1,128}\"?/)(?:\"[^\s\"]{1,256}\"|[^\s@'\"]{1,256})(?P<after>@)",
        ),
        # Authorization: Bearer …, Basic …
        (
            "bearer basic negotiate",
            r"(?P<before>\b(?:bearer|basic|negotiate)\s+)(?!auth)[A-Za-z0-9+/=._~\-]{8,}(?P<after>)",
        ),
        # X-Amz-Credential, X-Amz-Signature, X-Goog-Signature … in signed URLs
        (
            "x-amz- x-goog-",
            r"(?P<before>\bx-(?:amz|goog)-(?:credential|signature|security-token)=)[^\s&'\"]+(?P<after>)",
        ),
        # Cookies, one or more in a line
        (
            "cookie",
            rf"(?P<before>\bcookie2?(?:{_QUOTE})?\s?[:=]\s?(?:\[\s?)?(?:{_QUOTE})?)(?=[^\s;,'\"\]=]{{1,128}}=){_COOKIE}(?:;\s?{_COOKIE})*(?P<after>)",
        ),
        # Addresses that let whoever knows them write into a room: Slack, Discord, Teams
        (
            "hooks.slack.com /webhook",
            r"(?P<before>\b(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks|webhook\.office\.com/webhookb2)/)[^\s'\"<>()\[\]{},;\\]+(?P<after>)",
        ),
        # Tokens that are known by their looks: AWS, GitHub, GitLab, Slack, Databricks, Google, Stripe, OpenAI and
        # Anthropic, SendGrid, npm, Vault, JWT
        (
            "akia asia aroa aida ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xox dapi aiza ya29. k_live_ k_test_ sk- sg. npm_ hvs. eyj",
            r"(?P<before>)\b(?:(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w\-]{16,}|xox[abeoprs]-[\w\-]{8,}|dapi[0-9a-f]{28,}(?:-\d)?|AIza[\w\-]{30,}|ya29\.[\w\-.]{16,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|sk-(?:(?:proj|svcacct|admin|ant|or)-[\w\-]{24,}|[A-Za-z0-9]{32,})|(?-i:SG)\.[\w\-]{16,32}\.[\w\-]{20,64}|npm_[A-Za-z0-9]{30,}|hvs\.[\w\-]{24,}|eyJ(?=[\w\-]{8,512}\.)[\w\-]+\.[\w\-]{6,}(?:\.[\w\-]*)?)(?P<after>)",
        ),
    )
)

# What secrets are called, up to the end of the word with its dots. Short names must stand alone in it:
# `DB_PASS` is one, `bypass` and `pass_count` are not.
_KEY = r"""(?=[abcdeklmpst][abcehinopruw]) (?: (?:api|access|secret|subscription|license)\ key(?!\w|[.\-]\w)
      | (?: pass(?:w|phrase|code) | secret | credential | token
          | (?:api|access|account|private|shared|encryption|auth|keystore|master|license|subscription|app)[_.\-]?key
          | basic[_.\-]auth[_.\-]user[_.\-]info | sasl[_.\-]jaas[_.\-]config )
        \w*(?:[.\-]+\w+)*
      | (?: pwd | (?<=[_.\-])pass | (?-i:(?<=[a-z])Pass) | (?<!\w)(?:db)?pass(?!:\s) | (?<=user)pass
          | (?<![^\W_])pw | (?<=redis[._])auth | (?<!\w)auth(?=\s?=\s?\() | basic_?auth(?=\()
          | (?<!\w)(?:sig|signature|authorization) )
        (?!\w|[.\-]\w) )"""
# Such a word may only count or describe secrets, or be a file in a stack trace.
_HARMLESS = r"""(?: [_.\-](?:counts?|type|length|size|total) | (?-i:(?<=[a-z])(?:Counts?|Type|Length|Size|Total))
      | tokenizer | \.java | \.scala )\Z"""

# A call that sets one: `.password("…")`, `set_token("…")`, `withSecretKey("…")`, but neither `get_secret("name")`
# nor `setTokensCol("name")`.
_SETTER = r"""(?: .*\. | (?=_*(?:[Ss]et|[Ww]ith)) ) _* (?: (?:[Ss]et|[Ww]ith) (?: _ | (?=[A-Z]) ) \w*? )?
      (?i: passw(?:or)?d | passphrase | pass | pwd | secret | token | (?:api|access|secret|account|private)_?key )\Z"""

# How the value follows its key. A quote may be escaped, in JSON inside of JSON; one inside of the value
# then has more backslashes. A bare value goes on over a `,`, `)` or quote that doesn't end it.
_GAP, _BLANK = (
    r"\s{0,64}",
    r"\s{1,64}",
)  # bounded: where two can share blanks, time grows by the square
_CALL = rf"(?:[\w.]{{0,64}}[\[(]{_GAP})? [bfru]{{0,2}}"  # as in os.environ["…"], SecretStr(b"…")
_OPEN = rf"""{_CALL} (?P<slash>\\{{0,3}}) (?P<mark>\"{{3}}|'{{3}}|\"|')"""
_CLOSE = r"(?P=slash)(?P=mark)"
_QUOTED = rf"(?: (?:(?P=slash)\\){{2}} | (?P=slash){{2}}\\(?P=mark) | (?!{_CLOSE}). )+"
_TYPE = rf"(?:str|bytes|string)(?:{_GAP}\|{_GAP}None)?{_GAP}="
_EQUALS = rf"(?:{_QUOTE}(?:{_GAP}\])?)? {_GAP} (?: :{_GAP}{_TYPE} | => | -> | [=!:]= | =(?!>) | : ) {_GAP}"
_SCHEME = r"(?:bearer|basic|negotiate|digest|token)"
_RUN = rf"""(?: \{{[^{{}}:'\"\r\n]{{1,256}}\}}
      | (?! \{{{_GAP}(?:{_QUOTE}|\}}) | \[{_GAP}(?:\d{{1,19}}{_GAP}[,\]]|[{{\[\]]|{_QUOTE}) | [,;&)}}\]] | </ )
        (?: [^\s,;&)}}\]'\"<\\] | <(?!/) | \\(?!['\"])
          | [,;&] (?! \s | \Z | ['\"(\[{{\\] | [\w.\-]{{1,64}}\s{{0,8}}(?:=|:|->) )
          | [)}}\]'\"] (?! [\s,;.:&)}}\]'\"\\] | \Z )
        )+ )"""
_BARE = rf"""(?! (?:true|false|null|none) (?:[\s,;&)}}\]'\"]|\Z) | (?:{_TYPE}|=)?{_GAP}{_CALL}{_QUOTE} )
    (?:{_SCHEME}{_BLANK})?{_RUN}"""
# After a scheme of any name comes one word or a list, as in `Digest username="u", response="…"`. A short
# plain word after a scheme that is not known is part of a sentence.
_PARAMETER = r"[\w\-]{1,32}\s?=\s?(?:\\{0,3}\"[^\"\r\n]{0,1024}\"|(?!\\{0,3}\")[^\s,'\"]{1,1024})"
_AUTHORIZATION = rf"""(?:\[\s?)? (?: {_SCHEME}{_BLANK} | [a-z][\w\-]{{1,31}}[\ \t]{{1,4}}(?-i:(?![a-z]{{1,12}}[,;.:)]?(?:\s|\Z))) )
    (?: {_PARAMETER}(?:\s?,\s?{_PARAMETER})* | {_RUN} )"""
_VALUE = rf"(?:{_QUOTE})?[\s,]{{1,16}}(?:{_QUOTE})?value(?:{_QUOTE})?{_GAP}[=:]{_GAP}"
_MORE = rf"(?P<before>{_GAP}\+{_GAP}{_OPEN}){_QUOTED}(?P<after>(?:{_CLOSE})?)"  # "a" + "b"
_NAMING = ("'", '"', "=", ":")
_WORD = f"{ascii_letters}{digits}_.-"
_VALUES = (
    # A user and the value: auth=("u", "value"), HTTPBasicAuth("u", "value")
    (
        "",
        rf"(?P<before>(?:(?<=auth)(?:\s?=\s?)?|(?<=passwordcredentials)|(?<=awscredentials)|(?<=basiccredentials))\({_GAP}(?:{_QUOTE}[^'\"\r\n]{{0,128}}{_QUOTE}|[\w.]{{1,64}}){_GAP},{_GAP}{_OPEN}){_QUOTED}(?P<after>(?:{_CLOSE})?)",
    ),
    # key="value", "key": "value", ["key"] = "value", and SQL's PASSWORD 'value'
    (
        "",
        rf"(?P<before>(?:{_EQUALS}|(?<=password){_BLANK}){_OPEN}){_QUOTED}(?P<after>(?:{_CLOSE})?)",
    ),
    # ("key", "value"), but not the next key of {"name": "token", "type": …}
    (
        "",
        rf"(?P<before>{_QUOTE}{_GAP},{_GAP}{_OPEN}){_QUOTED}(?P<after>{_CLOSE}(?!{_GAP}:)|(?=[\r\n])|\Z)",
    ),
    # A whole JAAS line
    (
        "",
        rf"(?P<before>(?<=jaas.config){_EQUALS})(?!\s|{_QUOTE})(?:\"[^\"\r\n]*\"|'[^'\r\n]*'|[^;\r\n])+(?P<after>)",
    ),
    # Authorization: scheme value
    ("", rf"(?P<before>(?<=authorization){_EQUALS}){_AUTHORIZATION}(?P<after>)"),
    # key=value, key: value, key -> value
    ("", rf"(?P<before>{_EQUALS}){_BARE}(?P<after>)"),
    # <password>value</password>, <name>password</name><value>value</value>
    ("", rf"(?P<before>(?:</name>{_GAP}<value)?>)[^<]{{1,256}}(?P<after></)"),
    # {"name": "key", "value": "value"}, name="key" value="value", Key=key, Value=value
    ("name", rf"(?P<before>{_VALUE}{_OPEN}){_QUOTED}(?P<after>(?:{_CLOSE})?)"),
    ("name", rf"(?P<before>{_VALUE}){_BARE}(?P<after>)"),
    # A call: set_key("value")
    ("call", rf"(?P<before>(?=\(){_OPEN}){_QUOTED}(?P<after>(?:{_CLOSE})?)"),
    # --key value
    ("--", rf"(?P<before>{_BLANK}(?:{_QUOTE})?)(?!-){_BARE}(?P<after>)"),
    # Spark's lists of options: (key,value)
    ("(", rf"(?P<before>{_GAP},{_GAP})(?:[^)\r\n]|\)(?![\s,;.:)}}\]'\"]|\Z))+(?P<after>)"),
)

# A cheap look that lets most text pass untouched: every pattern above needs one of these, in lower case.
_SUSPECT = (
    r"://|jdbc:|jaas|private|pass|pwd|pw|secret|cred|token|key|sig|bearer|basic|negotiate|auth|cookie|x-amz|x-goog"
    r"|hooks\.slack|webhook|akia|asia|aroa|aida|gh[pousr]_|github_pat|glpat|xox|dapi|ya29|aiza|eyj|[rs]k_|sk-|sg\."
    r"|npm_|hvs\."
)
# C1, lone surrogates, the two separators of lines, and all of Unicode's category Cf: the marks that
# reorder or hide text.
_HIDDEN = (
    "\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_CONTROL = f"[\x00-\x1f{_HIDDEN}]"
_CONTROL_BUT_LINES = f"[\x00-\x08\x0b-\x1f{_HIDDEN}]"


@cache
def _compiled(pattern: str, flags: int = _FLAGS) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def mask(text: str) -> str:
    """Return the text with every secret in it replaced by `***`; line breaks stay."""
    return _mask_front(text, LONGEST_TEXT)


def _mask_front(text: str, longest: int) -> str:
    """Mask what is not cut off. A secret across the cut is not known as one: the last word goes."""
    masked = _mask_encoded(text[:longest])
    if len(text) <= longest:
        return masked
    # Not before it is masked: in a word without end, there would be another cut, and no better one.
    words = masked[-_LONGEST_SECRET:].rsplit(None, 1)
    return masked[:-_LONGEST_SECRET] + "".join(words[:-1])


def _mask_encoded(text: str) -> str:
    masked = plain = _mask_plain(text)
    for _ in range(_ENCODED):
        decoded = unquote(plain) if "%" in plain else plain
        if decoded == plain:
            break
        plain = _mask_plain(decoded)
        if plain != decoded:  # the percent signs hid one, such as `pass%77ord=…`
            masked = plain
    return masked


def _mask_plain(text: str) -> str:
    text = _compiled(_CONTROL_BUT_LINES, 0).sub("\N{REPLACEMENT CHARACTER}", text)
    folded = text.casefold()
    if not _compiled(_SUSPECT, 0).search(folded):
        return text
    for words, pattern in _PATTERNS:
        if any(word in folded for word in words):
            text = _compiled(pattern).sub(rf"\g<before>{MASK}\g<after>", text)
    return _mask_named(text)


def _mask_named(text: str) -> str:
    """Mask the values of secret keys, in one walk from key to key."""
    done, at = [], 0
    while key := _compiled(_KEY).search(text, at):
        value = None if _compiled(_HARMLESS).search(key[0]) else _find_value(text, key)
        done.append(text[at : key.end()])
        at = key.end()
        while value:
            done += value["before"], MASK, value["after"]
            at = value.end()
            value = _compiled(_MORE).match(text, at)
    return "".join((*done, text[at:]))


def _find_value(text: str, key: re.Match[str]) -> re.Match[str] | None:
    near = text[max(0, key.start() - 64) : key.start()]
    outside = near.rstrip(_WORD)
    word, last = near[len(outside) :], outside.rstrip()[-1:]
    leads = ["", word[:2], last]
    if last in _NAMING:
        leads.append("name")
    if text.startswith("(", key.end()) and _compiled(_SETTER, re.VERBOSE).match(word + key[0]):
        leads.append("call")
    tried = (_compiled(value).match(text, key.end()) for lead, value in _VALUES if lead in leads)
    return next(filter(None, tried), None)


def clean(name: str) -> str:
    """Return a name fit for a label or one log field: no control characters, bounded, masked."""
    masked = _mask_front(name, LONGEST_NAME + _LONGEST_SECRET)
    shown = _compiled(_CONTROL, 0).sub("\N{REPLACEMENT CHARACTER}", masked[: LONGEST_NAME + 1])
    whole = len(shown) <= LONGEST_NAME and len(name) <= LONGEST_NAME + _LONGEST_SECRET
    return shown if whole else shown[: LONGEST_NAME - 1] + "…"


def mask_all(value: Any) -> Any:
    """Mask what is inside of dicts, lists and tuples: every string, and what secret keys name."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        named = _names_secret(value)
        return {
            mask_all(key): _mask_item(named if _is(key, "value") and named else key, item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mask_all(item) for item in value]
    return value


def _mask_item(key: Any, item: Any) -> Any:
    """A dict under such a key goes by its own keys: offsets are under the names of topics."""
    if isinstance(item, (list, tuple)):
        return [_mask_item(key, each) for each in item]
    plain = isinstance(item, (str, int, float)) and not isinstance(item, bool)
    return MASK if plain and isinstance(key, str) and _is_secret(key) else mask_all(item)


def _names_secret(pair: dict[Any, Any]) -> str | None:
    """The secret key whose value the dict holds under `value`: `{"name": "password", "value": …}`."""
    names = (item for key, item in pair.items() if _is(key, "name", "key"))
    return next((name for name in names if isinstance(name, str) and _is_secret(name)), None)


def _is(key: Any, *names: str) -> bool:
    return isinstance(key, str) and key.lower() in names


def _is_secret(key: str) -> bool:
    return bool(_compiled(_KEY).search(key)) and not _compiled(_HARMLESS).search(key)
