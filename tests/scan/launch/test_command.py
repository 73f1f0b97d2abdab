from __future__ import annotations

from collections.abc import Mapping

import pytest

from specmap.scan.launch.command import Command, CommandError, choose, read
from specmap.scan.launch.unknown import Unknown, unknown_parts
from specmap.scan.vocabulary import load_vocabulary

NAMES = load_vocabulary().arguments


def one(text: str, env: Mapping[str, str] | None = None) -> Command:
    found = read(text, NAMES, env)
    assert len(found) == 1
    return found[0]


PLAIN = ("--model-path", "m", "--tp", "8")


@pytest.mark.parametrize(
    "text",
    [
        "python -m sglang.launch_server --model-path m --tp 8",
        "python3 -m sglang.launch_server \\\n  --model-path m \\\n  --tp 8\n",
        "python3 -m sglang.launch_server \\\r\n  --model-path m \\\r\n  --tp 8\r\n",
        "$ python3 -m sglang.launch_server --model-path m --tp 8",
        "root@node0:/sgl-workspace# python3 -m sglang.launch_server --model-path m --tp 8",
        "(env) user@host:~/work$ python3 -m sglang.launch_server --model-path m --tp 8",
        "[root@node0 work]# python3 -m sglang.launch_server --model-path m --tp 8",
        "# start it\npython -m sglang.launch_server --model-path 'm' --tp \"8\" # eight GPUs",
        "nohup python -m sglang.launch_server --model-path m --tp 8 > server.log 2>&1 &",
        "python -m sglang.launch_server --model-path m --tp 8 2>&1 | tee server.log",
        "sudo numactl --cpunodebind=0 --membind=0 python -m sglang.launch_server "
        "--model-path m --tp 8",
        "sglang serve --model-path m --tp 8",
        "/opt/venv/bin/sglang serve --model-type llm --model-path m --tp 8",
        "cd /work && python -m sglang.launch_server --model-path m --tp 8 && echo done",
        "bash -c 'python -m sglang.launch_server --model-path m --tp 8'",
        'ssh node0 "cd /work; python -m sglang.launch_server --model-path m --tp 8"',
        "docker run --gpus all --shm-size 32g -v ~/.cache:/root/.cache --ipc=host img:tag \\\n"
        "  python3 -m sglang.launch_server --model-path m --tp 8",
        "```bash\npython -m sglang.launch_server --model-path m --tp 8\n```\n",
        "I start it with\n\n```\npython -m sglang.launch_server --model-path m --tp 8\n```\n"
        "and it doesn't work.",
        "> python -m sglang.launch_server \\\n> --model-path m --tp 8\n",
        "`python -m sglang.launch_server --model-path m --tp 8`",
        "MODEL=m\nTP=8\npython -m sglang.launch_server --model-path $MODEL --tp ${TP}",
        'ARGS=(--model-path m # the model\n  --tp 8)\npython -m sglang.launch_server "${ARGS[@]}"',
        'ARGS="--model-path m"\nARGS+=" --tp 8"\npython -m sglang.launch_server $ARGS',
        "cat > run.sh <<'EOF'\npython -m sglang.launch_server --model-path m --tp 8\nEOF\n"
        "bash run.sh",
        "--model-path m --tp 8",
    ],
)
def test_the_arguments_of_a_server(text: str) -> None:
    command = one(text)
    assert command.argv == PLAIN
    assert command.model == "m"


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("A=1 B='x y' python -m sglang.launch_server --tp 8", {"A": "1", "B": "x y"}),
        ("export A=1\nexport B=2\npython -m sglang.launch_server --tp 8", {"A": "1", "B": "2"}),
        ("env A=1 python -m sglang.launch_server --tp 8", {"A": "1"}),
        ("set A=1\r\npython -m sglang.launch_server --tp 8", {"A": "1"}),
        ("$env:A = '1'\npython -m sglang.launch_server --tp 8", {"A": "1"}),
        ("docker run -e A=1 --env B=2 img python3 -m sglang.launch_server", {"A": "1", "B": "2"}),
        ("export A=1\ndocker run -e B=2 img python3 -m sglang.launch_server", {"B": "2"}),
        (
            "docker run --ulimit memlock=-1 -eA=1 img env B=2 C=3 python3 -m sglang.launch_server",
            {"A": "1", "B": "2", "C": "3"},
        ),
        ("A=1 docker run -e A -e B img python3 -m sglang.launch_server", {"A": "1", "B": "$B"}),
        ("export A=1\nssh h 'B=2 python3 -m sglang.launch_server'", {"B": "2"}),
        ("export A=1\nunset A\npython -m sglang.launch_server --tp 8", {}),
        ("A=$HOME/x python -m sglang.launch_server", {"A": "$HOME/x"}),
        ("if x; then\n export A=1\nfi\npython -m sglang.launch_server", {"A": "$A"}),
    ],
)
def test_the_environment_of_a_server(text: str, env: dict[str, str]) -> None:
    assert dict(one(text).env) == env


def test_a_variable_that_is_not_exported() -> None:
    command = one("SGLANG_X=1\npython -m sglang.launch_server --tp 8")
    assert not command.env
    assert command.notes == ("set but not exported, so the server does not see it: SGLANG_X",)


def test_unknown_values_stay_as_they_are_written() -> None:
    text = "python -m sglang.launch_server --model $MODEL --tp ${TP:-8} --host <node0-ip> --port 1"
    command = one(text)
    assert command.argv == (
        *("--model", "$MODEL", "--tp", "${TP:-8}", "--host", "<node0-ip>", "--port", "1"),
    )
    assert unknown_parts(" ".join(command.argv)) == ("$MODEL", "${TP:-8}", "<node0-ip>")
    assert one(text, {"MODEL": "m"}).model == "m"


def test_a_variable_that_a_branch_sets_is_unknown() -> None:
    text = "TP=8\nif [ $# -gt 1 ]; then TP=4; fi\npython -m sglang.launch_server --tp $TP"
    assert one(text).argv == ("--tp", "$TP")


SERVER = "python -m sglang.launch_server --tp 8"
POD_OF_ANOTHER = """
spec:
  containers:
  - command: [python3, -m, sglang.launch_server, --tp, "8"]
    env:
    - name: A
      valueFrom: {configMapKeyRef: {name: graphs, key: a}}
"""


@pytest.mark.parametrize(
    "text",
    [
        f"A=$B {SERVER}",
        f"export A=${{B:-1}}\n{SERVER}",
        f"docker run -e A img {SERVER}",
        f"docker run --env=A img {SERVER}",
        f"docker run -eA img {SERVER}",
        f"if [ $1 = on ]; then\n  export A=1\nfi\n{SERVER}",
        f"A=1\nif [ $1 = on ]; then\n  export A\nfi\n{SERVER}",
        f"export A=1\nif [ $1 = off ]; then unset A; fi\n{SERVER}",
        f'[ -n "$1" ] && export A=1\n{SERVER}',
        f"grep -q on flags || export A=1\n{SERVER}",
        f"export A=1\nsource env.sh\n{SERVER}",
        f"export A=1\n[ -f env.sh ] && . ./env.sh\n{SERVER}",
        f"A=1\nsource env.sh\nexport A\n{SERVER}",
        POD_OF_ANOTHER,
    ],
)
def test_a_variable_that_the_text_leaves_open(text: str) -> None:
    """Its value refers to what is not there: it is neither set nor unset."""
    command = one(text)
    assert unknown_parts(command.env["A"])
    assert command.argv == ("--tp", "8")


@pytest.mark.parametrize(
    "text",
    [
        f"cd /work && export A=1 && {SERVER}",
        f'[ -n "$1" ] && B=1\nexport A=1\n{SERVER}',
        f"if true; then B=1; fi\nA=1 {SERVER}",
        f"source env.sh\nexport A=1\n{SERVER}",
        f"export A=1\n(source env.sh)\n{SERVER}",
        f"export A=1\nsource venv/bin/activate\n{SERVER}",
    ],
)
def test_a_variable_that_is_set_beside_a_test(text: str) -> None:
    assert one(text).env["A"] == "1"


def test_a_sourced_file_may_change_a_word_but_not_what_is_stated() -> None:
    text = "TP=8\nsource env.sh\npython -m sglang.launch_server --tp $TP"
    assert one(text).argv == ("--tp", "$TP")
    assert one(text, {"TP": "4"}).argv == ("--tp", "4")


OTHER = SERVER.replace("8", "4")


@pytest.mark.parametrize(
    "opening",
    [
        "cat <<EOF", "cat <<'EOF' >&2", ": <<'EOF'", "read -r -d '' USAGE <<EOF",
        "usage() { cat <<EOF", "cat <<-EOF && exit 1",
    ],
)  # fmt: skip
def test_a_document_that_is_only_shown_starts_no_server(opening: str) -> None:
    closing = "\n}" if "{" in opening else ""
    assert one(f"{opening}\n{OTHER}\nEOF{closing}\n{SERVER}").argv == ("--tp", "8")


@pytest.mark.parametrize(
    "opening", ["bash <<EOF", "ssh h <<EOF", "cat <<EOF | bash", "cat > run.sh <<EOF"]
)
def test_a_document_that_is_run_or_kept_starts_its_server(opening: str) -> None:
    assert one(f"{opening}\n{SERVER}\nEOF").argv == ("--tp", "8")


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        (f"source env.sh\n{SERVER}", ("source env.sh",)),
        (f". ./env.sh && {SERVER}", (". ./env.sh",)),
        (f"docker run --env-file a.env img {SERVER}", ("--env-file a.env",)),
        (f"docker run --env-file=a.env img {SERVER}", ("--env-file=a.env",)),
        (POD_OF_ANOTHER.replace("env:", "envFrom:"), ("envFrom",)),
        (f"source venv/bin/activate\n{SERVER}", ()),
        (f"source env.sh\ndocker run img {SERVER}", ()),
        (SERVER, ()),
    ],
)
def test_what_may_set_more_variables(text: str, sources: tuple[str, ...]) -> None:
    command = one(text)
    assert command.sources == sources
    assert [note for note in command.notes if "--env NAME=VALUE" in note] == [
        f"{source} may set any variable but those that the text sets after it; "
        "--env NAME=VALUE states one"
        for source in sources
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("model-path: m\n  tp: 8\n", "line 2, column 5: mapping values are not allowed here"),
        ("model-path: m\ntp: [8\n", "line 3, column 1: expected ',' or ']'"),
        ("\ttp: 8\n", "cannot start any token"),
    ],
)
def test_yaml_that_is_badly_formed_is_named(text: str, where: str) -> None:
    with pytest.raises(CommandError) as refused:
        one(text)
    assert f"this is no valid YAML ({where.partition('cannot')[0]}" in str(refused.value)
    assert where in str(refused.value)


def test_a_text_that_is_no_yaml_at_all_is_not_called_that() -> None:
    with pytest.raises(CommandError) as refused:
        one("echo hello world")
    assert "YAML (" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("python -m sglang.launch_server \\ \n --model-path m --tp 8", "spaces after a backslash"),
        ("python -m sglang.launch_server \\\n --model-path m\n --tp 8", "missing backslash"),
        ("python -m sglang.launch_server \\\n --model-path m \\\n # no \\\n --tp 8", "missing"),
        ("python -m sglang.launch_server \u2014model-path m \u2013tp 8", "a long dash"),
        ("python -m sglang.launch_server --model-path \u201cm\u201d --tp 8", "typographic quotes"),
        ("python\u00a0-m sglang.launch_server --model-path m\u00a0--tp 8", "non-breaking spaces"),
        ("python -m sglang.launch_server ^\r\n --model-path m ^\r\n --tp 8", "continued line"),
        ("sglang serve m --tp 8", "the first word is taken for the model"),
        ("python -m sglang.launch_server --model-path m --tp '8", "a quote ' is never closed"),
    ],
)
def test_repairs_leave_a_note(text: str, note: str) -> None:
    command = one(text)
    assert command.argv == PLAIN
    assert any(note in line for line in command.notes)


def test_json_without_quotes() -> None:
    text = 'python -m sglang.launch_server --json-model-override-args {"a": 1, "b": "x"} --tp 8'
    command = one(text)
    assert command.argv[1] == '{"a": 1, "b": "x"}'
    assert "unquoted JSON" in command.notes[0]


COMPOSE = """
services:
  sglang:
    image: img
    environment:
      - A=1
      - TOKEN
    entrypoint: python3 -m sglang.launch_server
    command: >
      --model-path m
      --tp 8
"""
POD = """
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: server
    command: ["python3", "-m", "sglang.launch_server"]
    args:
    - --model-path
    - m
    - --tp
    - "$(TP)"
    env:
    - {name: A, value: "1"}
    - {name: TP, value: "8"}
"""
LITERAL = """
services:
  sglang:
    environment: {A: 1}
    command: |
      python3 -m sglang.launch_server
      --model-path m
      --tp 8
"""
SCRIPT = """
kind: Deployment
spec:
  template:
    spec:
      containers:
      - command: [/bin/bash, -c]
        args:
        - |
          export A=1
          python3 -m sglang.launch_server \\
            --model-path m \\
            --tp 8
"""


@pytest.mark.parametrize(
    "text", [COMPOSE, LITERAL, POD, SCRIPT, f"kubectl apply -f - <<EOF\n{POD}EOF\n"]
)
def test_containers(text: str) -> None:
    command = one(text)
    assert command.argv == PLAIN
    assert command.env["A"] == "1"


def test_a_value_from_elsewhere() -> None:
    command = one(COMPOSE)
    assert command.env["TOKEN"] == "$TOKEN"
    assert unknown_parts(command.env["TOKEN"])


def test_a_helm_template() -> None:
    command = one(
        "kind: Pod\nspec:\n  containers:\n  - name: {{ .Chart.Name }}\n"
        "    {{- if .Values.gpu }}\n    command: [python3, -m, sglang.launch_server]\n"
        "    {{- end }}\n    args:\n    - --model-path\n    - {{ .Values.model }}\n"
        "    - --tp\n    - {{ .Values.tp | quote }}\n"
    )
    assert command.argv == ("--model-path", "<Values.model>", "--tp", "<Values.tp>")
    assert len(unknown_parts(" ".join(command.argv))) == 2


def test_a_config_file() -> None:
    command = one("model-path: m\ntp: 8\ndisable-cuda-graph: true\ncuda-graph-bs: [1, 2]\n")
    assert command.model == "m"
    assert command.config == {
        "model-path": "m",
        "tp": 8,
        "disable-cuda-graph": True,
        "cuda-graph-bs": [1, 2],
    }


def test_a_config_file_that_the_text_writes() -> None:
    command = one("cat > c.yaml <<EOF\ntp: 8\nEOF\nsglang serve --config c.yaml")
    assert command.argv == ("--config", "c.yaml")
    assert command.files == {"c.yaml": "tp: 8\n"}


def test_python_calls() -> None:
    command = one(
        "import os\nimport sglang as sgl\nos.environ['A'] = '1'\nMODEL = 'm'\n"
        "llm = sgl.Engine(model_path=MODEL, tp_size=8, cuda_graph_bs=[1, 2], port=pick())\n"
    )
    assert command.fields == {
        "model_path": "m",
        "tp_size": 8,
        "cuda_graph_bs": (1, 2),
        "port": Unknown("{{pick()}}"),
    }
    assert command.model == "m"
    assert command.env == {"A": "1"}


def test_a_command_in_a_python_string() -> None:
    command = one(
        "server, port = launch_server_cmd(\n"
        '    """\npython3 -m sglang.launch_server --model-path m --tp 8\n"""\n)'
    )
    assert command.argv == PLAIN


def test_a_logged_settings_object() -> None:
    command = one(
        "[2026-01-01 01:02:03 TP0] server_args=ServerArgs(model_path='m', tp_size=8, "
        "lora_paths=None, cuda_graph_bs=[1, 2])\n[2026-01-01 01:02:04] Init torch distributed."
    )
    assert command.fields == {
        "model_path": "m",
        "tp_size": 8,
        "lora_paths": None,
        "cuda_graph_bs": (1, 2),
    }
    assert command.notes[0].startswith("a logged settings object")


def test_several_servers() -> None:
    text = (
        "python -m sglang.launch_server --model m --disaggregation-mode prefill &\n\n"
        "python -m sglang.launch_server --model m --disaggregation-mode decode --port 30001 &\n"
        "python -m sglang_router.launch_router --pd-disaggregation\n"
    )
    found = read(text, NAMES)
    assert [command.argv[3] for command in found] == ["prefill", "decode"]
    assert [command.line for command in found] == [1, 3]
    assert choose(found, 2).notes == ("the text starts 2 servers (lines 1, 3); this is number 2",)
    assert "this is number 1" in choose(found).notes[0]
    with pytest.raises(CommandError, match="no server 3 in this text: it starts 2"):
        choose(found, 3)


@pytest.mark.parametrize(
    "text",
    [
        "echo hello",
        "echo 'python -m sglang.launch_server'",
        "python -m http.server",
        "- a\n- b\n",
        "''",
    ],
)
def test_no_server(text: str) -> None:
    with pytest.raises(CommandError, match="no server is started in this text"):
        read(text, NAMES)
