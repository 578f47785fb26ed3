"""The well-known shapes of tokens.

Law: a shape begins with one of its starts, has at most MOST bytes, and holds nothing but WORD: so the end of a text
that may still become a token can be told. It holds a run of at least RUN characters of A-Z a-z 0-9 _ - that are not
all hexadecimal. In that run, or in the BEHIND bytes before it, stands one of its starts, or of its marks if it has
any: so plain text is passed over quickly.
"""

from __future__ import annotations

from typing import NamedTuple

MOST, RUN, BEHIND = 4096, 20, 40
WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+="
# Not all of a run is hexadecimal: else a shape could hide in what is passed over.
_MIXED = r"(?=[0-9a-f_-]{0,200}[A-Zg-z])"


class Shape(NamedTuple):
    """A shape: its name, what it may begin with, and its pattern."""

    name: str
    starts: tuple[str, ...]
    pattern: str
    marks: tuple[str, ...] = ()


SHAPES = (
    Shape("anthropic-key", ("sk-ant-",), r"sk-ant-[a-z]{2,10}[0-9]{2}-[A-Za-z0-9_-]{20,200}"),
    Shape("openrouter-key", ("sk-or-",), r"sk-or-v[0-9]-[0-9a-f]{48,80}"),
    Shape(
        "openai-key",
        ("sk-",),
        r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,250}|[A-Za-z0-9_-]{16,150}T3BlbkFJ[A-Za-z0-9_-]{16,150})",
        ("T3BlbkFJ", "sk-proj-", "sk-svcacct-", "sk-admin-"),
    ),
    Shape("aws-access-key", ("AKIA", "ASIA"), r"A[KS]IA[A-Z2-7]{16}(?![A-Z0-9])"),
    Shape(
        "aws-secret-key", ("AWS_SECRET_ACCESS_KEY=",), r"AWS_SECRET_ACCESS_KEY=[A-Za-z0-9/+]{40}", ("AWS_SECRET_ACC",)
    ),
    Shape(
        "aws-secret-key", ("aws_secret_access_key=",), r"aws_secret_access_key=[A-Za-z0-9/+]{40}", ("aws_secret_acc",)
    ),
    Shape("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,250}"),
    Shape("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,250}"),
    Shape(
        "gitlab-token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,250}(?:\.[A-Za-z0-9_.-]{2,60})?",
    ),
    Shape(
        "slack-token",
        ("xox",),
        r"xox[abeoprs]-[A-Za-z0-9-]{15,250}",
        ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
    ),
    Shape("slack-token", ("xapp-",), r"xapp-[0-9]-[A-Za-z0-9-]{15,250}"),
    Shape(
        "slack-webhook",
        ("hooks.slack.com/services/",),
        rf"hooks\.slack\.com/services/T\w{{6,12}}/B\w{{6,12}}/{_MIXED}[A-Za-z0-9]{{20,40}}",
        ("services/T",),
    ),
    Shape("google-api-key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    Shape("google-token", ("ya29.",), rf"ya29\.{_MIXED}[A-Za-z0-9_-]{{20,1000}}"),
    Shape("google-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{28}"),
    Shape("npm-token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    Shape("pypi-token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,1000}"),
    Shape("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}"),
    Shape("jwt", ("eyJ",), r"eyJ[A-Za-z0-9_-]{17,1200}\.eyJ[A-Za-z0-9_-]{8,1800}\.[A-Za-z0-9_-]{20,800}"),
    Shape("huggingface-token", ("hf_",), r"hf_[A-Za-z]{34}"),
    Shape("vault-token", ("hvs.",), rf"hvs\.{_MIXED}[A-Za-z0-9_-]{{80,300}}"),
    Shape("docker-token", ("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{27}"),
    Shape("groq-key", ("gsk_",), r"gsk_[A-Za-z0-9]{52}"),
    Shape("xai-key", ("xai-",), r"xai-[A-Za-z0-9]{80}"),
    Shape("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[por]_v1_[0-9a-f]{64}"),
    Shape("age-key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
)
