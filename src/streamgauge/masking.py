"""Keep secrets and control characters out of everything that leaves the process.

One function for text that people read (`mask`), one for names that become labels (`clean`). Pure,
no state, safe on any thread; text is cut before it is searched, so that a huge exception costs no
more than a small one.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

MASK = "***"
LONGEST_TEXT = 16 * 1024
LONGEST_NAME = 200

_SECRET_KEY = r"""(?:
    (?: passw | passphrase | secret | credential | token | (?:api|access|account|private|shared|encryption|auth)[_.\-]?key )
    [\w.\-]{0,64}
  | (?<!\w) (?: pwd | sig | signature )
)"""  # noqa: S105 - what secrets are called, not one of them

# Each pattern keeps the groups `before` and `after` and loses what is between them. Every repetition
# is bounded: a description is written by others and may be made to be slow.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE | re.VERBOSE)
    for pattern in (
        # -----BEGIN PRIVATE KEY----- … -----END PRIVATE KEY-----
        r"(?P<before>-----BEGIN\ [A-Z ]*PRIVATE\ KEY-----).*?(?P<after>-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)",
        # A whole JAAS line: the login module's options hold user and password.
        r"(?P<before>sasl[._]jaas[._]config['\"]?\s*(?:=|:|->|,)\s*).{0,4096}?(?P<after>;['\"]?|[\r\n]|\Z)",
        # scheme://user:password@host, also with an @ or a / in the password
        r"(?P<before>\b[a-z][a-z0-9+.\-]{0,24}://[^\s:/?\#@'\"\[\]]{0,128}:)(?!//)[^\s'\"\[\]]{1,256}?(?P<after>@(?=[\w.\-\[]{1,255}(?::\d+)?(?:[/?\#,;\s'\"\])}]|\Z)))",
        # jdbc:oracle:thin:user/password@host
        r"(?P<before>\bjdbc:oracle:\w{1,16}:[^\s/'\"]{1,128}/)[^\s@'\"]{1,256}(?P<after>@)",
        # Authorization: Bearer …, Basic …
        r"(?P<before>\b(?:bearer|basic|negotiate)\s+)[A-Za-z0-9+/=._~\-]{8,}(?P<after>)",
        # key=value, key: value, "key" -> "value", with quotes
        rf"(?P<before>{_SECRET_KEY}(?P<quote>\\?['\"]?)\s*(?:=>|->|=|:)\s*(?P<open>\\?['\"]))(?:(?!(?P=open)).){{1,4096}}(?P<after>(?:(?P=open))?)",
        # key=value, key: value, key -> value, without
        rf"(?P<before>{_SECRET_KEY}(?:\\?['\"])?\s*(?:=>|->|=|:)\s*)(?!\*\*\*)[^\s'\"&;,)}}\]]+(?P<after>)",
        # key,value of Spark's option lists: (password,secret)
        rf"(?P<before>\(\s*{_SECRET_KEY}\s*,\s*)(?!\*\*\*)[^)\s]{{1,256}}(?P<after>\))",
        # X-Amz-Credential, X-Amz-Signature, X-Goog-Signature … in signed URLs
        r"(?P<before>\bx-(?:amz|goog)-(?:credential|signature|security-token)=)[^\s&'\"]+(?P<after>)",
        # Tokens that are known by their looks: AWS, GitHub, GitLab, Slack, Databricks, Google, JWT
        r"(?P<before>)\b(?:(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w\-]{16,}|xox[abeoprs]-[\w\-]{8,}|dapi[0-9a-f]{28,}(?:-\d)?|AIza[\w\-]{30,}|ya29\.[\w\-.]{16,}|eyJ[\w\-]{8,}\.[\w\-]{6,}(?:\.[\w\-]*)?)(?P<after>)",
    )
)
_DOTALL = re.compile(_PATTERNS[0].pattern, re.IGNORECASE | re.VERBOSE | re.DOTALL)

# A cheap look that lets most text pass untouched: every pattern above needs one of these.
_SUSPECT = re.compile(
    r"://|jdbc:|jaas|private|pass|pwd|secret|cred|token|key|sig|bearer|basic|negotiate|x-amz|x-goog"
    r"|AKIA|ASIA|AROA|AIDA|gh[pousr]_|github_pat|glpat|xox|dapi|ya29|AIza|eyJ",
    re.IGNORECASE,
)
# C0, DEL, C1, and the marks that reorder or hide text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_CONTROL_BUT_LINES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def mask(text: str) -> str:
    """Return the text with every secret in it replaced by `***`; line breaks stay."""
    text = _CONTROL_BUT_LINES.sub(
        "\N{REPLACEMENT CHARACTER}",
        _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text[:LONGEST_TEXT]),
    )
    if not _SUSPECT.search(text):
        return _mask_encoded(text)
    text = _DOTALL.sub(rf"\g<before>{MASK}\g<after>", text)
    for pattern in _PATTERNS[1:]:
        text = pattern.sub(rf"\g<before>{MASK}\g<after>", text)
    return _mask_encoded(text)


def _mask_encoded(text: str) -> str:
    """Mask text whose secret hides behind percent signs, such as `pass%77ord=…`."""
    if "%" not in text:
        return text
    plain = unquote(text)
    if plain == text or "%" in plain:
        return text
    masked = mask(plain)
    return text if masked == plain else masked


def clean(name: str) -> str:
    """Return a name fit for a label or one log field: no control characters, bounded, masked."""
    name = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", mask(name[: LONGEST_NAME * 4]))
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def mask_all(value: Any) -> Any:
    """Mask every string inside a value of dicts, lists and tuples; other things pass."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask_all(key): _mask_item(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask_all(item) for item in value]
    return value


_KEY = re.compile(_SECRET_KEY, re.IGNORECASE | re.VERBOSE)


def _mask_item(key: Any, item: Any) -> Any:
    secret = isinstance(key, str) and isinstance(item, str) and _KEY.search(key)
    return MASK if secret else mask_all(item)
