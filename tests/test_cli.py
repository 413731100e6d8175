"""The command line loads what the command needs, and says the same as if it had loaded everything."""

import json
import subprocess
import sys

import pytest

import streamgauge
from streamgauge.cli import COMMANDS, build_parser, main

ALONE = {"streamgauge", "streamgauge.version"}


def loaded(code):
    """Names of the modules that the code loads in a new interpreter."""
    code = f"import sys\nbare = set(sys.modules)\n{code}\nprint('\\n', *(set(sys.modules) - bare))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def ours(modules):
    """Those of this package."""
    return {name for name in modules if name.partition(".")[0] == "streamgauge"}


def run(*words):
    """What a command prints when its parser ends it."""
    lines = [
        "from streamgauge.cli import main",
        f"try: main({list(words)!r})",
        "except SystemExit: pass",
    ]
    return "\n".join(lines)


def test_root_of_the_package_costs_next_to_nothing():
    """A command, a type checker or an editor pays only for what it uses."""
    modules = loaded("import streamgauge")
    assert ours(modules) == ALONE
    assert not {"msgspec", "typing", "json", "re"} & modules


def test_every_public_name_is_listed_before_it_is_used():
    """Completion in a notebook shows `attach` too."""
    assert set(streamgauge.__all__) <= set(dir(streamgauge))
    assert "TelemetryListener" in dir(streamgauge)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        streamgauge.nothing_like_it  # noqa: B018 - it raises


def test_settings_are_imported_when_they_are_used():
    """`from streamgauge import Config` is as ever the class of `streamgauge.config`."""
    assert "streamgauge.config" in loaded(
        "from streamgauge import Config, ConfigError, QueryConfig"
    )
    assert streamgauge.Config is sys.modules["streamgauge.config"].Config


@pytest.mark.parametrize("words", [("--help",), ("nothing",), ()])
def test_help_loads_the_table_alone(words):
    """No command's module is needed to list the commands, or to say that there is no such one."""
    modules = loaded(run(*words))
    assert ours(modules) == {*ALONE, "streamgauge.cli"}
    assert not {"msgspec", "json"} & modules


def test_version_loads_no_other_command():
    """The quickest of all."""
    assert ours(loaded(run("version"))) == {*ALONE, "streamgauge.cli"}


@pytest.mark.parametrize("command", COMMANDS)
def test_command_loads_no_other_commands_module(command):
    """Unless the other is a part of it: `export kubernetes` is rules and dashboards in one."""
    parts = {"export": {"rules", "dashboards"}}.get(command, set())
    others = {module for name, (_, module) in COMMANDS.items() if name not in {command, *parts}}
    assert not (others - ALONE) & loaded(run(command, "--help"))


def test_help_is_that_of_the_whole_parser():
    """The table's help lines are those of the commands' own parsers."""
    assert build_parser(()).format_help() == build_parser().format_help()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_that_of_the_whole_parser(command, capsys):
    """Which others are complete makes no difference."""
    said = []
    for complete in ((command,), COMMANDS):
        with pytest.raises(SystemExit) as ended:
            build_parser(complete).parse_args([command, "--help"])
        assert ended.value.code == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert f"usage: streamgauge {command}" in said[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the following arguments are required: command"),
        (("nothing", "version"), "invalid choice: 'nothing'"),
        (("ver",), "invalid choice: 'ver'"),
        (("--json", "version"), "unrecognized arguments: --json"),
        (("version", "metrics"), "unrecognized arguments: metrics"),
        (("rules",), "the following arguments are required: action"),
    ],
)
def test_wrong_command_line_is_told(words, said, capsys):
    """Exit status 2 and argparse's own words, whichever parsers are complete."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_version_for_people_and_for_programs(capsys):
    """In words, and as JSON."""
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"streamgauge {streamgauge.__version__}\n"
    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": streamgauge.__version__}


def test_version_as_an_option(capsys):
    """As every other program has it."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"streamgauge {streamgauge.__version__}\n"


def test_metrics_for_people_and_for_programs(capsys):
    """The same series in both."""
    assert main(["metrics"]) == 0
    text = capsys.readouterr().out
    assert main(["metrics", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) > 80
    assert all(f"{row['name']}{{" in text for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no job given; usage: streamgauge run job.py [arguments of the job]"),
        (("/nowhere/job.py",), "there is no job /nowhere/job.py; name a Python file to run"),
        (("/",), "/ is a folder; name the job's Python file in it"),
    ],
)
def test_run_without_a_job_says_so(words, said, capsys):
    """Exit status 2; nothing of Spark is needed for it."""
    assert main(["run", *words]) == 2
    assert capsys.readouterr().err == f"streamgauge run: {said}\n"


def test_script_for_spark_submit_finds_the_package(capsys):
    """It is run by its path, as a file that belongs to no package: what is missing is the job alone."""
    assert main(["run", "--script"]) == 0
    script = capsys.readouterr().out.strip()
    done = subprocess.run(
        [sys.executable, script, "/nowhere/job.py"], capture_output=True, text=True, check=False
    )
    assert "FileNotFoundError" in done.stderr
    assert "ImportError" not in done.stderr
