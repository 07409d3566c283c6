#!/bin/bash
# run: programs of the standard ABI run unchanged on another library. A program built by MPICH's mpicc_abi runs on ours,
# under our mpiexec and under MPICH's; one built by our mpicc runs on MPICH's library. The two mpi.h agree on every value.
# MPICH=DIR names an installation; else one is put into build/mpich.
set -euo pipefail
cd "$(dirname "$0")/../.."
dist=${DIST:-$PWD/dist}
work=build/abi
mkdir -p "$work"
if [ -z "${MPICH:-}" ]; then
    MPICH=$PWD/build/mpich
    if [ ! -x "$MPICH/bin/mpicc_abi" ]; then
        python3 -m venv "$MPICH"
        "$MPICH/bin/python" -m pip install -q --disable-pip-version-check 'mpich==5.0.2'
    fi
fi

is() { # is NAME EXPECTED COMMAND...
    local name=$1 expected=$2 out
    shift 2
    out=$(timeout 60 "$@") || { echo "abi: $name failed" >&2; exit 1; }
    [ "$out" = "$expected" ] || { echo "abi: $name says '$out', not '$expected'" >&2; exit 1; }
}

"$MPICH/bin/mpicc_abi" -std=c99 -o "$work/theirs" tests/abi/swap.c
"$dist/bin/mpicc" -std=c99 -o "$work/ours" tests/abi/swap.c
on_ours=(env "LD_LIBRARY_PATH=$dist/lib")
on_theirs=(env "LD_LIBRARY_PATH=$MPICH/lib")

is "our program on our library" "4 ranks on Kittiwake" "$dist/bin/mpiexec" -n 4 "$work/ours"
is "their program on our library" "4 ranks on Kittiwake" "${on_ours[@]}" "$dist/bin/mpiexec" -n 4 "$work/theirs"
is "their program on our library, their mpiexec" "4 ranks on Kittiwake" "${on_ours[@]}" "$MPICH/bin/mpiexec" -n 4 "$work/theirs"
is "our program on their library" "4 ranks on MPICH Ver" "${on_theirs[@]}" "$MPICH/bin/mpiexec" -n 4 "$work/ours"
is "a program without a launcher" "1 ranks on Kittiwake" "${on_ours[@]}" "$work/theirs"

PEER_MPI_ABI_INCLUDE=$MPICH/include ${CARGO:-cargo} test --quiet -p kw-abi --test header -- --include-ignored >"$work/header.log" 2>&1 || {
    cat "$work/header.log"
    exit 1
}
echo "abi: programs and values are the same as MPICH's"
