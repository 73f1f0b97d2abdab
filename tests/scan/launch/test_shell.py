"""Words as bash makes them: each expectation is what bash 5 printed for the same script."""

from __future__ import annotations

import pytest

from specmap.scan.launch.shell import run

SET = "A=1\nB='p q'\nE=\nL=(one 'two three' $A)\nA+=2\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("""a'b'"c"d""", ["abcd"]),
        ("""'x y' "x y" x\\ y""", ["x y", "x y", "x y"]),
        ('${A} "${A}" x${A}y', ["12", "12", "x12y"]),
        ('${B} "${B}" ${A}${B}', ["p", "q", "p q", "12p", "q"]),
        ('"${L[@]}" ${L[@]}', ["one", "two three", "1", "one", "two", "three", "1"]),
        ('${E} "${E}" a', ["", "a"]),
        ('a#b "#" # comment', ["a#b", "#"]),
        ('"\\"q\\"" \\"', ['"q"', '"']),
        ("a \\\n  b\\\nc", ["a", "bc"]),
        ("-x=${A} --flag='{\"a\": 1}'", ["-x=12", '--flag={"a": 1}']),
        ("a > out.log 2>&1 b", ["a", "b"]),
        ("a < in.txt", ["a"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    found = [command for command in run(f"{SET}p {text}\n", {}) if command.words[:1] == ("p",)]
    assert [list(command.words[1:]) for command in found] == [words]


def test_commands_are_taken_apart() -> None:
    text = "a 1; b 2 && c 3 | d 4 &\nif e; then f; fi\n(g)\nfor i in 1 2; do h $i; done\n"
    words = [" ".join(command.words) for command in run(text, {})]
    assert words == ["a 1", "b 2", "c 3", "d 4", "e", "f", "g", "h $i"]


def test_here_documents() -> None:
    found = run("cat > a.sh <<'EOF'\nx $A\nEOF\nb <<-END\n\ty\n\tEND\nc\n", {})
    assert [command.documents for command in found] == [("x $A\n",), ("y\n",), ()]
    assert found[-1].files == {"a.sh": "x $A\n"}


def test_a_value_that_a_command_prints_stays_a_reference() -> None:
    found = run('H=$(hostname -i | head)\nT=$((A + 1))\nN=${H}:5\np $H $T "$N" ${X:-1}\n', {})
    assert found[0].words == ("p", "$H", "$T", "${H}:5", "${X:-1}")


@pytest.mark.parametrize(
    ("prelude", "left"),
    [
        ("let N=8", "$N"),
        ("(( N = 8 ))", "$N"),
        ("((N++))", "$N"),
        ("printf -v N 8", "$N"),
        ("eval N=8", "$N"),
        ("read N", "$N"),
        ("f() { N=8; }", "$N"),
        ("{ N=8; } & wait", "$N"),
        ("(N=8)", "2"),
        ("(N=8); (cd x; N=9)", "2"),
        ("echo x | N=8", "2"),
        ("N=8 & wait", "2"),
        ("printf x | tee log", "2"),
    ],
)
def test_what_sets_a_variable_otherwise(prelude: str, left: str) -> None:
    """Bash gives 2 or 8 here; where the text alone does not tell which, neither is said."""
    assert run(f"N=2\n{prelude}\nserve $N", {})[-1].words == ("serve", left)


def test_a_server_in_the_subshell_that_sets_a_variable() -> None:
    assert run("N=2\n(cd x; N=8; serve $N)", {})[-1].words == ("serve", "8")
