#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# Whole training runs: does the trainer learn as it should, and does a compressed run learn what an uncompressed one does?
# About twenty minutes on two cores. Prints a table as comments, and TAP.
#
# usage: long.sh [RUN ...]   only these runs, as in: long.sh mpi int4 (mpi, on four ranks, is what the others are held to)
# Environment: top_srcdir, top_builddir, MPIEXEC as set by make; TAGC_TEST_TEXT: tinyshakespeare.txt, if it is not in
# ../shared/data; TAGC_TEST_STEPS: for a trial of the script, fewer steps (the bands then mean nothing);
# TAGC_TEST_TIMESCALE: factor for the time that a run may take.
src=${top_srcdir:-.}
build=${top_builddir:-.}
mpiexec=${MPIEXEC:-mpiexec}
text=${TAGC_TEST_TEXT:-$src/../shared/data/tinyshakespeare.txt}
steps=${TAGC_TEST_STEPS:-2000}
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
yield=$build/tests/.libs/yield.so
wanted=${*:-all}

if [ ! -r "$text" ]; then
    echo 'ok 1 - training # SKIP no tinyshakespeare.txt (name it in TAGC_TEST_TEXT)'
    echo '1..1'
    exit 0
fi
out=$(mktemp -d "${TMPDIR:-/tmp}/tagc-train-long.XXXXXX") || exit 99
trap 'rm -rf "$out"' EXIT
trap 'exit 99' HUP INT TERM

number=0
bad=0
# verdict GOOD TITLE
verdict() {
    number=$((number + 1))
    if [ "$1" = 1 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; bad=1; fi
}
field() { sed -n "s/^summary:.* $1=\([^ ]*\).*/\1/p" "$out/log"; }

# run NAME RANKS LOW HIGH [option ...]: trains, adds a line to the table, and holds the loss against a band in nats or, where
# HIGH ends in %, to that much above the loss of the run "mpi"
run() {
    name=$1 ranks=$2 low=$3 high=$4
    shift 4
    case " $wanted " in *' all '* | *" $name "*) ;; *) return ;; esac
    preload=
    if [ "$ranks" -gt "$cores" ] && [ -r "$yield" ]; then preload=$yield; fi
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 timeout $((3600 * ${TAGC_TEST_TIMESCALE:-1})) "$mpiexec" -n "$ranks" \
        env ${preload:+"LD_PRELOAD=$preload"} "$build/examples/train_gpt" --steps "$steps" --print-every 100 "$@" "$text" \
        >"$out/log" 2>&1 </dev/null
    status=$?
    loss=$(field val_loss)
    if [ $status != 0 ] || [ -z "$loss" ]; then
        verdict 0 "$name: exit status $status"
        tail -n 20 "$out/log" | sed 's/^/# /'
        return
    fi
    [ "$name" != mpi ] || dense=$loss dense_bytes=$(field bytes_per_step_rank)
    printf '# %-16s %5d %9.4f %9s %11.0f %8s %7.1f %8.0f\n' "$name" "$ranks" "$loss" \
        "$(echo "$loss ${dense:-0}" | awk '{ if ($2 > 0) printf "%+.2f %%", 100 * ($1 / $2 - 1) }')" \
        "$(field bytes_per_step_rank)" \
        "$(echo "$(field bytes_per_step_rank) ${dense_bytes:-0}" | awk '{ if ($1 > 0 && $2 > 0) printf "%.1f", $2 / $1 }')" \
        "$(echo "$(field kept)" | awk '{ print 100 * $1 }')" "$(field total_seconds)"
    case $high in
    *%)
        if [ -z "$dense" ]; then
            verdict 0 "$name: there is no run mpi to hold it against"
        else
            verdict "$(echo "$loss $dense ${high%?}" | awk '{ print ($1 <= $2 * (1 + $3 / 100)) }')" \
                "$name: loss $loss is at most $high above $dense"
        fi ;;
    *)
        verdict "$(echo "$loss $low $high" | awk '{ print ($1 >= $2 && $1 <= $3) }')" \
            "$name: loss $loss is from $low to $high" ;;
    esac
}

printf '# %-16s %5s %9s %9s %11s %8s %7s %8s\n' run ranks loss 'to mpi' 'bytes' 'less by' 'kept %' seconds
# What others get with this model, text and schedule: 1.88 on a sample, 1.897 and 1.920 on the whole of it
run single 1 1.88 1.94 --collective mpi
run mpi 4 1.88 1.94 --collective mpi
# An algorithm is named everywhere: in one node's memory the cost model would choose not to compress.
# Norms, 0.14 % of the model, travel as they are.
matrices='*ln_*:algorithm=dense'
run int4 4 0 0.7% --collective tagc --layers "$matrices" --algorithm direct --value int4
run top20 4 0 2% --collective tagc --layers "$matrices" --algorithm direct --sparsity 0.8
# The same, and every rank computes with weights of 8 bits; their owners keep them exactly.
run int4-gather8 4 0 1% --collective tagc --layers "$matrices" --algorithm direct --value int4 --gather int8
# The built-in rules: the feed-forward matrices and the embedding bear more, the rest travels as it is.
run transformer95 4 0 2% --collective tagc --layers transformer:sparsity=0.95,algorithm=direct
run transformer99 4 0 2% --collective tagc --layers transformer:sparsity=0.99,algorithm=direct
echo "1..$number"
exit $bad
