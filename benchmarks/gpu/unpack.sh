# shellcheck shell=bash
# Source this on the GPU machine with the folder of site.tar.xz: `. unpack.sh FOLDER`.
# Kernels that an earlier run compiled come back from cache.tar.xz beside it, if there:
# an engine then starts in about 50 s instead of 100 s (`tar cJf cache.tar.xz -C ~ .cache`).
packed=$1
[ -d /tmp/site/sglang ] || { mkdir -p /tmp/site && tar xJf "$packed/site.tar.xz" -C /tmp/site; }
[ -f "$packed/cache.tar.xz" ] && [ ! -d ~/.cache/tvm-ffi ] && tar xJf "$packed/cache.tar.xz" -C ~
for package in "$packed"/*.deb; do  # libnuma1, where the machine lacks it
  [ -f "$package" ] && dpkg -x "$package" / && ldconfig
done
export PYTHONPATH=/tmp/site PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
