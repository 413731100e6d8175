"""Every file that is written from the table and committed, and the command that writes them.

python -m streamgauge.grafana.alerts.documents [ROOT]
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamgauge.model.thresholds import PARAMETERS

from .alertmanager import alertmanager_file
from .catalogue import GROUPS, recordings
from .prometheus import KUBERNETES_FILE, RULE_FILE, Export, kubernetes_file, rule_file
from .settings import Settings

BEGIN, END = "<!-- {name}: written by a program -->", "<!-- end of {name} -->"


def whole_files() -> dict[str, str]:
    """Path in the repository and text of each file that is written whole."""
    settings = Settings()
    export = Export(settings)
    return {
        f"grafana/alerts/rules/{RULE_FILE}": rule_file(export),
        f"grafana/alerts/rules/{KUBERNETES_FILE}": kubernetes_file(export),
        "docker/alertmanager.yml": alertmanager_file(settings),
        "docs/runbooks/README.md": runbook_index(),
    }


def parts() -> dict[tuple[str, str], str]:
    """Text of each part of a hand-written file, by path and name of the part."""
    return {
        ("docs/alerts.md", "alerts"): alert_table(),
        ("docs/alerts.md", "rule parameters"): parameter_table(),
        ("docs/alerts.md", "recorded series"): recording_table(),
    }


def alert_table() -> str:
    """The alerts as a Markdown table."""
    settings = Settings()
    rows = ["| alert | severity | after | what it says |", "|---|---|---|---|"]
    for group in GROUPS:
        for alert in group.alerts:
            held = settings.duration(alert.hold) if alert.hold else "at once"
            variant = f" ({alert.variant})" if alert.variant else ""
            link = f"[{alert.full_name}](runbooks/{alert.full_name}.md)"
            rows.append(f"| {link}{variant} | {alert.severity} | {held} | {alert.summary} |")
    return "\n".join(rows)


def parameter_table() -> str:
    """The rule parameters as a Markdown table."""
    settings = Settings()
    rows = ["| rule parameter | default | per query | what it is |", "|---|---|---|---|"]
    for parameter in PARAMETERS:
        default = settings.number(parameter.name)
        if parameter.unit == "seconds" and parameter.default:
            default += f" ({settings.duration(parameter.name)})"
        rows.append(
            f"| `{parameter.name}` | {default} | {'yes' if parameter.per_query else ''} | {parameter.doc} |"
        )
    return "\n".join(rows)


def recording_table() -> str:
    """The recorded series as a Markdown table."""
    rows = ["| series | what it is |", "|---|---|"]
    rows.extend(f"| `{rule.record}` | {rule.doc} |" for rule in recordings())
    return "\n".join(rows)


def runbook_index() -> str:
    """The index of the runbooks, by category."""
    lines = [
        "# Runbooks",
        "",
        "One file an alert: what it means, what it costs, how to find the cause, what to do and what",
        "not to do. Written from the table in `grafana/alerts/`; the runbooks themselves are written by",
        "hand.",
    ]
    by_category: dict[str, dict[str, str]] = {}
    for group in GROUPS:
        for alert in group.alerts:
            by_category.setdefault(group.category, {}).setdefault(alert.full_name, alert.summary)
    for category, summaries in by_category.items():
        lines += ["", f"## {category.capitalize()}", ""]
        lines += [f"- [{name}]({name}.md): {summary}" for name, summary in summaries.items()]
    return "\n".join(lines) + "\n"


def replace_part(text: str, name: str, body: str) -> str:
    """The text with what stands between the part's markers replaced; raises where they are not."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"there is no part {name!r}: {begin} … {end}")
    return f"{before}{begin}\n{body}\n{end}{after}"


def expected_files(root: Path) -> dict[Path, str]:
    """What every generated file should hold, given the hand-written text around the parts."""
    files = {root / path: text for path, text in whole_files().items()}
    for (path, name), body in parts().items():
        place = root / path
        files[place] = replace_part(files.get(place) or place.read_text(), name, body)
    return files


def write(root: Path) -> list[Path]:
    """Write the files that differ from what is expected, and name them."""
    changed = []
    for path, text in expected_files(root).items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed.append(path)
    return changed


if __name__ == "__main__":
    for written in write(Path(sys.argv[1] if len(sys.argv) > 1 else ".")):
        sys.stdout.write(f"{written}\n")
