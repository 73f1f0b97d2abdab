#!/usr/bin/env bash
# Forks of one SGLang release, all up at once on one GPU, measured in turns (forks.py says how).
#
#   benchmarks/gpu/forks.sh PLAN PACKED [SECONDS]    run it; SECONDS (500) from here to the table
#
# PACKED holds site.tar.xz (pack_runtime.py), perhaps cache.tar.xz, and what PLAN names: patches,
# and the wrap plans that `forks.py pack` writes. OUT: where answers and table go (output/forks).
set -euo pipefail

[ $# -ge 2 ] && [ $# -le 3 ] || {
  sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
plan="$1" packed="$2" limit_s="${3:-500}"
for file in "$plan" "$packed/site.tar.xz"; do
  [ -f "$file" ] || { echo "forks.sh: no $file; pack_runtime.py and forks.py pack make the folder" >&2; exit 2; }
done
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="${PYTHON:-python3}"
out="$(mkdir -p "${OUT:-output/forks}" && cd "${OUT:-output/forks}" && pwd)"

# shellcheck source=benchmarks/gpu/unpack.sh
. "$here/unpack.sh" "$packed"
# Once, not in every process of every engine that starts.
"$python" -m compileall -q -j 0 /tmp/site >"$out/compile.log" 2>&1 || true
echo "unpacked and compiled: $SECONDS s"

agent="$here/../../specmap/trace/agent"
if "$python" "$agent/build_ring.py" /tmp/specmap-ring; then
  export SPECMAP_EXTENSION=/tmp/specmap-ring
else
  echo "forks.sh: no C ring; the ring in Python takes its place" >&2
fi
"$python" "$here/forks.py" run "$plan" "$packed" "$agent" "$out" "$((limit_s - SECONDS))"
