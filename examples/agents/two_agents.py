"""Two coding agents in one repository, from the first claim to the last commit; what each of them sees.

    python examples/agents/two_agents.py FOLDER

FOLDER must not exist: a repository is made there, with the hooks of git and of Claude Code installed. The
agents are played: what Claude Code would tell its hook, this program tells it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

LEASEHOLD = [sys.executable, "-m", "leasehold"]
IDENTITY = ("-c", "user.name=agent", "-c", "user.email=agent@example.org")


def main(folder: Path) -> None:
    """Play the scene."""
    folder.mkdir()
    (folder / "shop.py").write_text("open = True\n")
    run("git", "init", "--quiet", ".", at=folder)
    run("git", *IDENTITY, "add", ".", at=folder)
    run("git", *IDENTITY, "commit", "--quiet", "-m", "first", at=folder)
    for target in ("git", "claude-code"):
        run(*LEASEHOLD, "guard", "install", target, at=folder)

    print("ada edits:", outcome(edits(folder, "ada")))
    print("ben edits:", outcome(edits(folder, "ben")))

    (folder / "shop.py").write_text("open = False\n")
    print("ben commits:", outcome(commits(folder, "ben")))
    print("ada commits:", outcome(commits(folder, "ada")))

    hook(folder, "SessionEnd", "ada")
    print("ada is done")
    print("ben edits:", outcome(edits(folder, "ben")))


def edits(folder: Path, agent: str) -> "subprocess.CompletedProcess[str]":
    """Do what Claude Code does before an agent edits a file."""
    return hook(
        folder, "PreToolUse", agent, tool_name="Edit", tool_input={"file_path": str(folder / "shop.py")}
    )


def hook(folder: Path, event: str, agent: str, **more: object) -> "subprocess.CompletedProcess[str]":
    """Run the hook that is installed for an event."""
    settings = json.loads((folder / ".claude" / "settings.local.json").read_text())
    command = settings["hooks"][event][0]["hooks"][0]["command"]
    told = {"session_id": agent, "cwd": str(folder), "hook_event_name": event, **more}
    return run("sh", "-c", command, at=folder, given=json.dumps(told))


def commits(folder: Path, agent: str) -> "subprocess.CompletedProcess[str]":
    """Commit everything, as an agent does in its shell: Claude Code tells the shell which session it is."""
    return run(
        "git", *IDENTITY, "commit", "--quiet", "-am", f"by {agent}", at=folder, CLAUDE_CODE_SESSION_ID=agent
    )


def outcome(done: "subprocess.CompletedProcess[str]") -> str:
    """Return what an agent sees."""
    return "allowed" if done.returncode == 0 else f"refused: {done.stderr.strip()}"


def run(*command: str, at: Path, given: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command without whatever this environment says of agents and stores."""
    mine = ("LEASEHOLD_", "CLAUDE_", "GIT_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    return subprocess.run(
        command, cwd=at, env=inherited | environment, input=given, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
