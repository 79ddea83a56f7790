#!/bin/sh
# Builds llama.cpp's own server for this machine and prints where it is: the peer of "./slipstream bench peers".
#
# From the source distribution of the pinned llama-cpp-python, as pip fetches it, with nothing changed in it. Compiler
# and options are those of the set-up's own build, the decision about AMX included: the peer is as well built as
# Slipstream's llama.cpp. It takes some minutes, once: the server is kept beside the set-up's builds.
#
#   benchmarks/native_peer.sh           build it, unless it is there
#   benchmarks/native_peer.sh --find    only look: fails where it was not built yet
#
# Exit codes: 0 success, 1 failure, 3 there is no compiler.
set -eu
unset PYTHONHOME PYTHONPATH

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
root=$(dirname -- "$here")
python=$root/.venv/bin/python
if [ ! -x "$python" ]; then
    echo "Slipstream is not set up: ./slipstream setup does it." >&2
    exit 1
fi

# What the set-up knows of this machine: the build's name, the folder of builds, the release, compilers and options.
facts=$("$python" -c '
import os, shlex, sys
from pathlib import Path

root, script = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(root / "packaging"))
from first_start import amx, requirements
from first_start.llama_build import build_environment, plan_build
from first_start.machine import look
from first_start.wheel_cache import build_key, cache_folder

machine = look(os.environ)
if machine.compiler is None:
    print("There is no C and C++ compiler to build llama.cpp with.", file=sys.stderr)
    sys.exit(3)
plan = plan_build(machine, amx.probe(machine.compiler) if machine.has_amx else amx.Amx.ABSENT)
version = requirements.read(root)[0].llama_version
chosen = build_environment(plan, os.environ)
facts = {
    "key": build_key(version, plan, machine, os.environ, script),
    "kept": cache_folder(os.environ).parent / "peers",
    "version": version,
    "compiler": plan,
    **{name: chosen[name] for name in ("CC", "CXX", "CMAKE_ARGS")},
}
print(*(f"{name}={shlex.quote(str(value))}" for name, value in facts.items()), sep="\n")
' "$root" "$here/$(basename -- "$0")") || exit $?
eval "$facts"
export CC CXX

server=$kept/$key/llama-server
if [ -x "$server" ]; then
    echo "$server"
    exit 0
fi
[ "${1-}" != --find ] || exit 1

mkdir -p "$kept"
work=$(mktemp -d "$kept/.building-XXXXXX")
log=$kept/build.log
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# step WORDS COMMAND...: says what is done, and the end of the log where it fails.
step() {
    echo "$1" >&2
    shift
    "$@" >>"$log" 2>&1 </dev/null || {
        tail -n 15 "$log" >&2
        echo "llama.cpp's server was not built. The whole log: $log" >&2
        exit 1
    }
}

: >"$log"
step "Fetching the sources of llama-cpp-python $version with pip" \
    "$python" -m pip download --no-input --no-deps --no-binary llama-cpp-python --dest "$work" \
    --build-constraint "$root/constraints.txt" "llama-cpp-python==$version"
step "Unpacking them" tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null; then
    step "Fetching CMake with pip" "$python" -m venv "$work/tools"
    step "Installing CMake" "$work/tools/bin/python" -m pip install --constraint "$root/constraints.txt" cmake ninja
    PATH=$work/tools/bin:$PATH
fi
# One file without libraries of its own; without the web page and OpenSSL, which have no part in what is measured.
eval "set -- $CMAKE_ARGS"
step "Configuring llama.cpp for the $compiler" \
    cmake -S "$work"/llama_cpp_python-*/vendor/llama.cpp -B "$work/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=on -DBUILD_SHARED_LIBS=off \
    -DLLAMA_BUILD_COMMON=on -DLLAMA_BUILD_TOOLS=on -DLLAMA_BUILD_SERVER=on -DLLAMA_BUILD_APP=off \
    -DLLAMA_BUILD_UI=off -DLLAMA_USE_PREBUILT_UI=off -DLLAMA_OPENSSL=off \
    -DLLAMA_BUILD_TESTS=off -DLLAMA_BUILD_EXAMPLES=off "$@"
step "Building llama.cpp's server: this takes some minutes, once" \
    cmake --build "$work/build" --target llama-server

mkdir "$work/done"
mv "$work/build/bin/llama-server" "$work/done/"
rm -rf "${kept:?}/$key"
mv "$work/done" "$kept/$key"
echo "$server"
