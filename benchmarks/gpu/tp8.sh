#!/usr/bin/env bash
# EAGLE3 3/1/4 on all GPUs of this machine under the tracer: four engines, one table.
#
#   benchmarks/gpu/tp8.sh RELEASE [PACKED]            run it; at most nine minutes
#   benchmarks/gpu/tp8.sh --pack RELEASE PACKED       at home: runtime and plan for a bare machine
#   benchmarks/gpu/tp8.sh --dry-run RELEASE [PACKED]  say what would run
#
# Without PACKED, SGLang and specmap of the Python in PYTHON (python3) are taken. GPUS: how many
# (all, at most 8). OUT: where table and logs go (output/tp8). docs/eight-gpus.md says more.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="${PYTHON:-python3}"
limit_s=530

usage() {
  sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

fail() {
  printf 'tp8.sh: %s\n' "$*" >&2
  exit 2
}

verb=run
case "${1:-}" in
  --pack | --dry-run) verb="${1#--}"; shift ;;
  -*) usage ;;
esac
[ $# -ge 1 ] && [ $# -le 2 ] || usage
release="$1"
packed="${2:-}"
out="${OUT:-output/tp8}"

if [ "$verb" = pack ]; then
  [ -n "$packed" ] || usage
  "$python" "$here/pack_runtime.py" "$release" "$packed"
  exec "$python" "$here/tp8.py" plan "$release" "$packed/plan-$release.json"
fi

gpus="${GPUS:-}"
if [ -z "$gpus" ]; then
  if command -v nvidia-smi >/dev/null; then
    gpus="$(nvidia-smi -L | wc -l)"
  else
    [ "$verb" = dry-run ] || fail "no nvidia-smi here; GPUS says how many GPUs there are"
    gpus=8
  fi
fi
[[ "$gpus" =~ ^[0-9]+$ ]] || fail "GPUS=$gpus is no number"
[ "$gpus" -le 8 ] || gpus=8
[ "$gpus" -ge 2 ] || fail "tensor parallelism needs two GPUs, there is $gpus"

if [ "$verb" = dry-run ]; then
  exec "$python" "$here/tp8.py" show "$release" "$gpus"
fi

mkdir -p "$out" 2>/dev/null && [ -w "$out" ] || fail "cannot write to $out; OUT names another folder"
if [ -n "$packed" ]; then
  plan="$packed/plan-$release.json"
  [ -f "$plan" ] || fail "no $plan; tp8.sh --pack $release $packed makes it"
  # shellcheck source=benchmarks/gpu/unpack.sh
  . "$here/unpack.sh" "$packed"
else
  plan="$out/plan-$release.json"
  "$python" "$here/tp8.py" plan "$release" "$plan"
fi

agent="$here/../../specmap/trace/agent"
ring="$out/ring"
if "$python" "$agent/build_ring.py" "$ring"; then
  SPECMAP_EXTENSION="$(cd "$ring" && pwd)"
  export SPECMAP_EXTENSION
else
  echo "tp8.sh: no C ring; the ring in Python takes its place" >&2
fi
"$python" "$here/tp8.py" run "$release" "$gpus" "$plan" "$agent" "$out" "$((limit_s - SECONDS))"
