#!/bin/sh
# Builds the native code and its unit tests with sanitizers and runs them; any finding fails.
#
#   tests/native/sanitize.sh address [python] [pytest arguments]   addresses, leaks, undefined behaviour
#   tests/native/sanitize.sh thread  [python]                      data races
#
# With "address" the Python tests of the engine and the compiler run on the same library, too. Not with "thread": Python
# and torch are not built for it, and their own threads would drown what it finds. The unit tests call everything from
# many threads at once instead.
set -eu
cd "$(dirname "$0")/../.."
kind=$1
python=${2:-python3}
[ $# -gt 1 ] && shift 2 || shift
case $kind in
  # a check that fails ends the program; Python's own -fwrapv would hide overflows
  address) sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" ;;
  # what threads share does not depend on the instruction set, and the kernels take minutes to compile
  thread) sanitizers="-fsanitize=thread -DSEMPROLA_PLAIN_KERNELS" ;;
  *) echo "usage: $0 address|thread [python] [pytest arguments]" >&2; exit 2 ;;
esac
flags="-O1 -g1 -fno-wrapv $sanitizers"
build=$PWD/build/sanitize/$kind
library=$build/semprola/_native.abi3.so
mkdir -p "$build"
echo "Building the native code with $sanitizers (log: $build/build.log)"
SEMPROLA_NATIVE_FLAGS=$flags "$python" setup.py build_ext --build-lib "$build" --build-temp "$build/temp" \
  > "$build/build.log" 2>&1 || { tail -n 20 "$build/build.log"; exit 1; }
make -j2 -C tests/native BUILD="$build/tests" FLAGS="$flags" >> "$build/build.log" 2>&1 ||
  { tail -n 20 "$build/build.log"; exit 1; }
[ -e "$library" ] || { echo "$library was not built: see $build/build.log"; exit 1; }

# No memory for a huge array is an answer to be tested, not an error.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1
"$build/tests/unit_tests" "$library"
[ "$kind" = address ] || exit 0
[ $# -gt 0 ] || set -- tests/engine tests/compiler

# Python is not built with the sanitizers: their libraries are loaded before it, and what it never frees is not counted.
runtime() { "${CXX:-g++}" -print-file-name="$1"; }
LD_PRELOAD="$(runtime libasan.so) $(runtime libubsan.so) $(runtime libstdc++.so)" \
  ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 SEMPROLA_NATIVE_LIBRARY=$library SEMPROLA_ENGINE=native \
  "$python" -m pytest -q -x -p no:cacheprovider "$@"
