"""How a service is looked for, without starting a real one."""

import os
import pwd
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.services import process, programs, user
from tests.services.fixtures import missing
from tests.services.postgres import VARIABLE, postgres
from tests.services.programs import Programs, Unavailable, find, first_that_starts

NAMED = "postgresql://somebody@somewhere.example/postgres"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that has nothing installed, and from which nothing can be fetched."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setattr(programs, "_carried", lambda: tmp_path / "carried")
    monkeypatch.setattr(programs, "_POLICY", tmp_path / "policy-rc.d")
    return tmp_path


def wanted(machine: Path) -> Programs:
    return Programs(
        names=("create", "serve"),
        folders=(f"{machine}/lib/*/bin",),
        packages=("some-package",),
        wheel="some-wheel==1.0",
        wheel_hashes=("0" * 64,),
        wheel_folder="some_wheel/bin",
    )


def script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nPATH={os.defpath}\n{body}\n")
    path.chmod(0o755)


def have(folder: Path, *names: str) -> Path:
    for name in names:
        script(folder / name, "exit 0")
    return folder


def test_a_server_that_is_named_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_arguments: object) -> str:
        raise AssertionError("a server was started beside the one that is named")

    monkeypatch.setenv(VARIABLE, NAMED)
    monkeypatch.setattr("tests.services.postgres.first_that_starts", start)
    with postgres() as url:
        assert url == NAMED


def test_the_highest_version_comes_first_as_a_number(machine: Path) -> None:
    folders = [
        have(machine / "lib" / version / "bin", "create", "serve") for version in ("9.6", "15", "14", "100")
    ]
    versions = [folder.parent.name for folder in find(wanted(machine))]
    assert versions == ["100", "15", "14", "9.6"]
    assert len(folders) == len(versions)


def test_programs_on_the_path_come_before_all_others_and_wheels_last(machine: Path) -> None:
    carried = have(machine / "carried" / "some-wheel==1.0" / "some_wheel" / "bin", "create", "serve")
    library = have(machine / "lib" / "15" / "bin", "create", "serve")
    path = have(machine / "bin", "create", "serve")
    assert find(wanted(machine)) == [path, library, carried]


def test_a_folder_that_lacks_a_program_is_passed_over(machine: Path) -> None:
    have(machine / "lib" / "16" / "bin", "serve")
    complete = have(machine / "lib" / "15" / "bin", "create", "serve")
    assert find(wanted(machine)) == [complete]


def test_programs_that_do_not_start_are_passed_over(machine: Path) -> None:
    have(machine / "lib" / "16" / "bin", "create", "serve")
    works = have(machine / "lib" / "15" / "bin", "create", "serve")

    def start(folder: Path) -> Path:
        if folder != works:
            raise Unavailable("broken")
        return folder

    assert first_that_starts(wanted(machine), start) == works
    assert not (machine / "carried").exists(), "looking changes nothing"


def test_what_is_nowhere_to_be_had_is_refused_with_everything_that_was_tried(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    have(machine / "lib" / "16" / "bin", "create", "serve")
    script(machine / "bin" / "apt-get", "echo E: Unable to locate package; exit 100")

    def start(_folder: Path) -> None:
        raise Unavailable("create ended with 1: bad")

    with pytest.raises(Unavailable) as refused:
        first_that_starts(wanted(machine), start)
    tried = str(refused.value).split("; ")
    assert tried == [
        "looked for create and serve",
        "create ended with 1: bad",
        "apt-get update: E: Unable to locate package",
        "apt-get install some-package: E: Unable to locate package",
        f"{sys.executable} pip install {machine}/carried/wanted: "
        "ERROR: No matching distribution found for some-wheel==1.0",
    ]
    assert not (machine / "policy-rc.d").exists()


def test_only_root_installs_packages(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    script(machine / "bin" / "apt-get", f"touch '{machine}/called'")
    with pytest.raises(Unavailable, match="only be installed by root"):
        first_that_starts(wanted(machine), str)
    assert not (machine / "called").exists()


def test_packages_start_no_service_and_set_nothing_up_while_they_are_installed(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    folder = machine / "lib" / "15" / "bin"
    policy, setting = machine / "policy-rc.d", machine / "etc" / "made.d" / "ours.conf"
    install = f"""
case "$*" in *--no-download*) ;; *) exit 0 ;; esac
'{policy}'; echo $? > '{machine}/answer'
grep small '{setting}' >> '{machine}/answer'
mkdir -p '{folder}'; cp /bin/true '{folder}/create'; cp /bin/true '{folder}/serve'
"""
    script(machine / "bin" / "apt-get", install)
    programs = wanted(machine)._replace(settings={setting: "small = true\n"})
    assert first_that_starts(programs, lambda found: found) == folder
    assert (machine / "answer").read_text() == "101\nsmall = true\n"
    assert not policy.exists()
    assert not setting.parent.exists()


def test_what_was_left_behind_by_an_installation_that_was_killed_is_removed(machine: Path) -> None:
    works = have(machine / "lib" / "15" / "bin", "create", "serve")
    policy = machine / "policy-rc.d"
    policy.write_text(programs._POLICY_TEXT)
    assert first_that_starts(wanted(machine), lambda found: found) == works
    assert not policy.exists()


def test_an_interrupted_installation_comes_to_its_end_first(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    os.mkfifo(machine / "go")
    install = f"""
case "$*" in *--no-download*) ;; *) exit 0 ;; esac
kill -INT {os.getpid()}; read line < '{machine}/go'
'{machine}/policy-rc.d'; echo $? > '{machine}/answer'
"""
    script(machine / "bin" / "apt-get", install)

    def interrupted(number: int, frame: object) -> None:
        (machine / "go").write_text("on\n")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            first_that_starts(wanted(machine), str)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (machine / "answer").read_text() == "101\n", "the policy held to the end"
    assert not (machine / "policy-rc.d").exists()


def test_a_policy_of_the_machine_is_left_alone(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    script(machine / "policy-rc.d", "exit 104")
    before = (machine / "policy-rc.d").read_text()
    script(machine / "bin" / "apt-get", "exit 0")
    with pytest.raises(Unavailable, match="installed Debian's some-package"):
        first_that_starts(wanted(machine), str)
    assert (machine / "policy-rc.d").read_text() == before


def test_a_wheel_that_was_installed_in_part_is_not_found(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have(machine / "carried" / "partial" / "some_wheel" / "bin", "create", "serve")
    pip = machine / "python"
    script(pip, 'for word; do case $word in --target=*) target=${word#*=} ;; esac; done; mkdir -p "$target"')
    monkeypatch.setattr(sys, "executable", str(pip))
    assert not find(wanted(machine))
    with pytest.raises(Unavailable, match=r"installed some-wheel==1\.0"):
        first_that_starts(wanted(machine), str)
    assert not list((machine / "carried" / "some-wheel==1.0").iterdir()), "nothing of the partial one is kept"


def test_of_several_that_want_the_same_one_installs_it(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = machine / "python"
    body = f"""
echo installed >> '{machine}/count'
for word; do case $word in --target=*) target=${{word#*=}} ;; esac; done
mkdir -p "$target/some_wheel/bin"
cp /bin/true "$target/some_wheel/bin/create"; cp /bin/true "$target/some_wheel/bin/serve"
"""
    script(pip, body)
    monkeypatch.setattr(sys, "executable", str(pip))
    with ThreadPoolExecutor(4) as rivals:
        found = list(rivals.map(lambda _: first_that_starts(wanted(machine), str), range(4)))
    assert len(set(found)) == 1
    assert (machine / "count").read_text() == "installed\n"


def test_a_missing_service_skips_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Some is not available: no reason"):
        missing("Some", Unavailable("no reason"))


def test_in_ci_a_missing_service_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Some is not available: no reason"):
        missing("Some", Unavailable("no reason"))


def test_root_without_nobody_has_no_services(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", unknown)
    with pytest.raises(Unavailable, match="nobody"), user.private_folder():
        pass


def test_a_program_that_fails_says_why(machine: Path) -> None:
    with (
        user.private_folder() as folder,
        pytest.raises(Unavailable, match="ended with 3: first / second"),
    ):
        process.run(["/bin/sh", "-c", "echo first; echo second >&2; exit 3"], folder)
    assert not folder.exists()


def test_a_program_that_cannot_be_run_is_unavailable(machine: Path) -> None:
    with user.private_folder() as folder, pytest.raises(Unavailable, match="cannot be run"):
        process.run([str(machine / "nothing")], folder)


def test_a_service_that_ends_before_it_is_ready_says_why() -> None:
    service = ["/bin/sh", "-c", "echo no memory"]
    with (
        user.private_folder() as folder,
        pytest.raises(Unavailable, match="did not start: no memory"),
        process.running(service, folder, ready="ready", end_with=signal.SIGTERM),
    ):
        pass


def test_a_service_that_does_not_end_when_told_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_END_SECONDS", 0.1)
    service = ["/bin/sh", "-c", "trap '' TERM; echo $$ ready; while :; do read line < /dev/zero; done"]
    with (
        user.private_folder() as folder,
        process.running(service, folder, ready="ready", end_with=signal.SIGTERM),
    ):
        pass
    assert not folder.exists()
