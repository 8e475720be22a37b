"""Which files a shell command writes, as far as its text shows; and what it only looks like writing."""

import posixpath

import pytest

from leasehold.guards.shell import written

WRITES = {
    "echo x > a": ["/r/a"],
    "echo x >>a 2>b": ["/r/a", "/r/b"],
    "echo x &>a": ["/r/a"],
    "echo x >| a": ["/r/a"],
    "cat <in >'a b'": ["/r/a b"],
    'cat > "a b"': ["/r/a b"],
    "cat >a\\ b": ["/r/a b"],
    "> /etc/x": ["/etc/x"],
    "rm -rf a b/c": ["/r/a", "/r/b/c"],
    "rm -- -a": ["/r/-a"],
    "touch -d now a": ["/r/a"],
    "ls | tee -a a": ["/r/a"],
    "make && rm a; rm b || rm c": ["/r/a", "/r/b", "/r/c"],
    "mv a b": ["/r/a", "/r/b"],
    "mv a b folder": ["/r/a", "/r/b", "/r/folder/a", "/r/folder/b"],
    "mv -t folder a b": ["/r/a", "/r/b", "/r/folder/a", "/r/folder/b"],
    "cp a b": ["/r/b"],
    "cp -r a/x folder/": ["/r/folder/x"],
    "cp -t folder a b": ["/r/folder/a", "/r/folder/b"],
    "cp --target-directory=folder a": ["/r/folder/a"],
    "install -m 644 a b": ["/r/b"],
    "sed -i s/a/b/ x y": ["/r/x", "/r/y"],
    "sed -i.bak -e s/a/b/ x": ["/r/x"],
    "sed -Ei 's/a > b/c/' x": ["/r/x"],
    "perl -pi -e 's/a/b/' x": ["/r/x"],
    "dd if=a of=b": ["/r/b"],
    "truncate -s 0 a": ["/r/a"],
    "git rm a": ["/r/a"],
    "git mv a b": ["/r/a", "/r/b"],
    "git checkout HEAD -- a": ["/r/a"],
    "git restore a": ["/r/a"],
    "cd sub && rm a": ["/r/sub/a"],
    "cd sub && cd y && rm a": ["/r/sub/y/a"],
    "cd folder; cd /r/folder; rm a ../b": ["/r/folder/a", "/r/b"],
    "(cd folder; rm a)": ["/r/folder/a"],
    "(cd folder && ls); rm a": ["/r/a"],
    "(cd folder; (cd ..; rm a); rm b); rm c": ["/r/a", "/r/folder/b", "/r/c"],
    "cd folder | cat; rm a": ["/r/a"],
    "cd folder & rm a": ["/r/a"],
    "cd folder || exit; rm a": ["/r/folder/a"],
    "cd gone || rm a": ["/r/gone/a", "/r/a"],
    "cd gone; rm a": ["/r/gone/a", "/r/a"],
    "make && cd folder && rm a; rm b": ["/r/folder/a", "/r/folder/b", "/r/b"],
    "ls | cd folder; rm a": ["/r/folder/a", "/r/a"],
    "make && cd $x; rm a": ["/r/a"],
    "if cd folder; then rm a; fi": ["/r/folder/a", "/r/a"],
    "{ cd folder; rm a; }": ["/r/folder/a"],
    "case x in x) rm a;; esac": ["/r/a"],
    "case x in x) cd folder;; esac; rm a": ["/r/folder/a", "/r/a"],
    "function f() { cd folder; }; rm a": ["/r/folder/a", "/r/a"],
    "CDPATH= cd folder && rm a": ["/r/folder/a"],
    "cd -- folder && rm a": ["/r/folder/a"],
    "cd -P folder && rm a": ["/r/folder/a"],
    "until false; do rm a; done": ["/r/a"],
    "git restore --staged --worktree a": ["/r/a"],
    "git restore -SW a": ["/r/a"],
    "rsync -a folder/ other folder": ["/r/folder", "/r/folder/other"],
    "echo $'it\\'s' > a": ["/r/a"],
    "rm a\\\nb": ["/r/ab"],
    "X=1 sudo rm a": ["/r/a"],
    "if true; then rm a; fi": ["/r/a"],
    "rm a # rm b": ["/r/a"],
    "rm a \\\n b": ["/r/a", "/r/b"],
    "cat > a <<EOF\nrm b\necho > c\nEOF\nrm d": ["/r/a", "/r/d"],
    "cat <<-'E' > a\n\tit's\n\tE\nrm b": ["/r/a", "/r/b"],
    "rm ./a ../r/b": ["/r/a", "/r/b"],
    "/bin/rm a": ["/r/a"],
}

LOOKS = [
    "cat a",
    "grep '>' a",
    'echo "x > a"',
    "echo x \\> a",
    "echo x >&2",
    "ls 2>&1 | grep a",
    "sed s/a/b/ x",
    "sed -n 1,2p x",
    "git diff a",
    "git rm --cached a",
    "git restore --staged a",
    "git checkout a",
    "git -C sub rm a",
    "rm $a ${b} *.py ~/x `c`",
    'rm "$a"',
    "cd $x && rm a",
    "cd -- - && rm a",
    "echo rm a",
    "cp a",
    "diff <(ls) a",
    "echo 'never closed",
    'echo "never closed',
    "cat <<EOF\n> a\nnever ends",
    "",
    ">",
    "a && ",
    'python -c \'open("a", "w")\'',
]


@pytest.mark.parametrize("command", WRITES)
def test_a_command_that_writes_says_where(command: str) -> None:
    assert (
        written(command, "/r", lambda path: posixpath.normpath(path) in ("/r", "/r/folder"))
        == WRITES[command]
    )


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_that_writes_nothing_literal_says_nothing(command: str) -> None:
    assert written(command, "/r", lambda path: False) == []
