"""action.yml as a runner of GitHub runs it: step by step, in bash, with the inputs of a job."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .fake_github import REPOSITORY, FakeGitHub

ROOT = Path(__file__).parents[2]
UPLOADED = "https://github.com/octo/zoo/actions/runs/1/artifacts/7"
# What the runner asks a line of the log for.
_COMMAND = re.compile(r"\s*::([\w-]+)(?: ([^:]*(?:::?(?!:)[^:]+)*?))?::(.*)")
# The older form counts wherever it stands in a line.
_OLD_COMMAND = re.compile(r"##\[(\w[\w-]*)")


def action(root: Path = ROOT) -> dict[str, Any]:
    """action.yml as YAML has it."""
    return dict(yaml.safe_load((root / "action.yml").read_text()))


@dataclass(frozen=True)
class Annotation:
    """A line of the job's log that is shown as an annotation."""

    kind: str
    properties: str
    message: str


@dataclass
class Done:
    """What became of a job that used the action."""

    failed: str | None = None
    log: str = ""
    summary: str = ""
    annotations: list[Annotation] = field(default_factory=list)
    commands: set[str] = field(default_factory=set)
    outputs: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)


@dataclass
class Runner:
    """A machine with a checkout of the repository, on which jobs run one after the other."""

    workspace: Path
    temp: Path
    github: FakeGitHub
    path: str = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    checkout: Path = ROOT
    ref: str = "main"
    # What actions/setup-python says, and what earlier steps wrote to GITHUB_ENV.
    python: Path = Path(sys.executable)
    planted: Mapping[str, str] = field(default_factory=dict)

    def run(self, number: int, pull_request: int | None = None, **inputs: str) -> Done:
        """Run the job of a push to main, or to a pull request, whose run has this number."""
        made = action(self.checkout)
        of_pull_request = {"number": pull_request, "head": {"sha": f"{number:040x}"}}
        github = {
            "action_path": str(self.checkout),
            "action_ref": self.ref,
            "event": {"pull_request": of_pull_request} if pull_request else {},
            "run_attempt": "1",
            "run_id": str(number),
            "sha": f"{number:040x}",
            "token": self.github.token,
        }
        contexts: dict[str, Any] = {"github": github, "steps": {}}
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= made["inputs"].keys()
        contexts["inputs"] = {
            name: given[name] if name in given else _filled(said["default"], contexts)
            for name, said in made["inputs"].items()
        }
        done = Done()
        for step in made["runs"]["steps"]:
            if "if" in step and not _value(step["if"], contexts):
                continue
            outputs = self._use(step, contexts, done) if "uses" in step else None
            if outputs is None:
                status, outputs = self._bash(step, contexts, done)
                if status:
                    done.failed = step["name"]
            if "id" in step:
                contexts["steps"][step["id"]] = {"outputs": outputs}
            if done.failed:
                break
        done.outputs = {
            name: _filled(said["value"], contexts) for name, said in made["outputs"].items()
        }
        done.annotations, done.commands = _annotations(done.log)
        return done

    def _use(self, step: dict[str, Any], contexts: dict[str, Any], done: Done) -> dict[str, str]:
        """A step of another action: only what it is given is looked at."""
        if step["uses"].startswith("actions/setup-python@"):
            return {"python-path": str(self.python)}
        assert step["uses"].startswith("actions/upload-artifact@")
        path = Path(_filled(step["with"]["path"], contexts))
        assert path.is_file()
        done.artifacts[path.name] = path
        return {"artifact-url": UPLOADED}

    def _bash(
        self, step: dict[str, Any], contexts: dict[str, Any], done: Done
    ) -> tuple[int, dict[str, str]]:
        """Run a step's script; its status and its outputs."""
        script, output, summary = (self.temp / name for name in ("step.sh", "output", "summary"))
        script.write_text(step["run"])
        output.write_text("")
        summary.write_text("")
        filled = {name: _filled(text, contexts) for name, text in step.get("env", {}).items()}
        ran = subprocess.run(
            [script if word == "{0}" else word for word in step["shell"].split()],
            cwd=self.workspace,
            env={**self._environment(contexts["github"]), **self.planted, **filled},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
        )
        done.log += ran.stdout.decode()
        done.summary += summary.read_text()
        told = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return ran.returncode, told

    def _environment(self, github: Mapping[str, Any]) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k == "HOME" or k.startswith("LC_")}
        return kept | {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.github.url,
            "GITHUB_GRAPHQL_URL": f"{self.github.url}/graphql",
            "GITHUB_OUTPUT": str(self.temp / "output"),
            "GITHUB_REF_NAME": "7/merge" if github["event"] else "main",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": github["run_id"],
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": github["sha"],
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "PATH": self.path,
            "RUNNER_TEMP": str(self.temp),
        }


def with_memhouse(runner: Runner) -> Runner:
    """The runner, on which memhouse is installed already: that of these tests."""
    runner.python = runner.temp / "python"
    runner.python.write_text(
        f"""#!/bin/sh
for environment; do :; done
mkdir -p "$environment/bin"
ln -s {Path(sys.executable).parent}/memhouse "$environment/bin"
cat > "$environment/bin/python" << 'EOF'
#!/bin/sh
[ "$3" = pip ] || exec {sys.executable} "$@"
EOF
chmod +x "$environment/bin/python"
"""
    )
    runner.python.chmod(0o755)
    return runner


def _filled(text: str, contexts: dict[str, Any]) -> str:
    """A text with the values of its expressions."""
    return re.sub(
        r"\$\{\{(.*?)\}\}", lambda found: str(_value(found[1], contexts) or ""), str(text)
    )


def _value(expression: str, contexts: dict[str, Any]) -> Any:
    """The value of an expression of names, texts, ==, !=, && and ||: no others are needed."""
    python = re.sub(
        r"('[^']*')|([a-z][\w.-]*)",
        lambda found: found[1] or f"find({found[2]!r})",
        expression.replace("&&", " and ").replace("||", " or "),
    ).replace("find('and')", "and")
    python = python.replace("find('or')", "or")

    def find(path: str) -> Any:
        found: Any = contexts
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return "" if found is None else found

    return eval(python.strip(), {"find": find})


def _annotations(log: str) -> tuple[list[Annotation], set[str]]:
    """The annotations in a log, and all commands that the runner would take."""
    shown, commands, stopped = [], set(), None
    for line in log.splitlines():
        command = _COMMAND.match(line)
        if stopped is not None:
            stopped = None if command and command[1] == stopped else stopped
        elif command is not None and command[1] == "stop-commands":
            stopped = command[3]
        elif command is not None:
            commands.add(command[1])
            shown.append(Annotation(command[1], command[2] or "", command[3]))
        else:
            commands.update(_OLD_COMMAND.findall(line))
    assert stopped is None
    return shown, commands
