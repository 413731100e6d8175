"""Write the generated pages and tables; `--check` only says whether they have drifted."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from streamgauge.config import Config, QueryConfig
from streamgauge.exporters.metrics.reference import write_markdown
from streamgauge.exporters.traces.attributes import TABLE

ROOT = Path(__file__).resolve().parent.parent


def settings(kind: type[Config | QueryConfig]) -> str:
    """The table of settings, from the fields of a record and what stands below each."""
    tree = ast.parse((ROOT / "src/streamgauge/config.py").read_text(encoding="utf-8"))
    (config,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == kind.__name__]
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for field, words in zip(config.body, config.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(words, ast.Expr):
            name = ast.unparse(field.target)
            text = " ".join(ast.literal_eval(words.value).split())
            rows.append(f"| `{name}` | {_default(getattr(kind(), name))} | {text} |")
    return "\n".join(rows)


def attributes() -> str:
    """The table of what spans say."""
    rows = [f"| `{entry.name}` | {entry.spans} | {entry.meaning} |" for entry in TABLE]
    return "\n".join(["| attribute | span | meaning |", "|---|---|---|", *rows])


def _default(value: object) -> str:
    if value is None or value in ({}, ()):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{value:g}`" if isinstance(value, (int, float)) else f"`{value}`"


def between(page: str, marker: str, text: str) -> str:
    """A page with the part between its markers replaced."""
    begin, end = f"<!-- {marker} -->\n", f"\n<!-- /{marker} -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{text}{end}{after}"


def pages() -> dict[Path, str]:
    """Every generated page as it should be."""
    readme, traces = ROOT / "README.md", ROOT / "docs" / "traces.md"
    return {
        ROOT / "docs" / "metrics.md": write_markdown(),
        traces: between(traces.read_text(encoding="utf-8"), "attributes", attributes()),
        readme: between(
            between(readme.read_text(encoding="utf-8"), "settings", settings(Config)),
            "query settings",
            settings(QueryConfig),
        ),
    }


def main(check: bool) -> int:
    """Write or compare each page; 1 if one has drifted."""
    drifted = 0
    for page, text in pages().items():
        if check and (not page.exists() or page.read_text(encoding="utf-8") != text):
            print(f"{page.name} has drifted from its table; `make docs` writes it anew")
            drifted = 1
        elif not check:
            page.write_text(text, encoding="utf-8")
    return drifted


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
