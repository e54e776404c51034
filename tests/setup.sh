# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# What ./quickstart and ./runtests share; read by bash with ".".

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# What a Debian package gives: a command to look for, or a file behind a "/"
provides() {
    case $1 in
    gcc) have gcc || have cc ;;
    make | autoconf | automake | pkg-config | gfortran | valgrind | clang | clang-format | g++ | ccache | xz-utils)
        have "${1/xz-utils/xz}" ;;
    libtool) have libtoolize ;;
    mpich) have mpiexec.mpich || have mpiexec.hydra ;;
    libmpich-dev) have mpicc.mpich ;;
    openmpi-bin) have mpiexec.openmpi ;;
    libopenmpi-dev) have mpicc.openmpi ;;
    python3-venv) have python3 && python3 -c 'import venv, ensurepip' 2>/dev/null ;;
    libc6-dev) compiles '#include <stdio.h>' ;;
    libcmocka-dev) compiles '#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>' ;;
    libopenblas-dev) have pkg-config && pkg-config --exists openblas ;;
    libsimde-dev) [ -r /usr/include/simde/x86/avx512.h ] || [ -d /usr/include/simde ] ;;
    libclang-rt-dev) have clang && sanitizes clang ;;
    libomp-dev) have clang && echo 'int main(void){return 0;}' | clang -fopenmp -xc - -o /dev/null 2>/dev/null ;;
    hipcc) have hipcc ;;
    libamdhip64-dev) [ -r /usr/include/hip/hip_runtime_api.h ] || [ -d /opt/rocm/include/hip ] ;;
    gnuplot-nox) have gnuplot ;;
    bible-kjv) have bible ;;
    iproute2) have ip && have tc ;;
    *) return 1 ;;
    esac
}
compiles() { printf '%s\n' "$1" | ${CC:-cc} -xc -fsyntax-only - 2>/dev/null; }
sanitizes() { echo 'int main(void){return 0;}' | "$1" -fsanitize=address,undefined -xc - -o /dev/null 2>/dev/null; }

# What to type elsewhere
elsewhere() {
    say "On other systems these are, or are in, packages with names like:"
    say "  Fedora     dnf install gcc make autoconf automake libtool pkgconf mpich-devel libcmocka-devel openblas-devel gnuplot"
    say "  openSUSE   zypper install gcc make autoconf automake libtool pkgconf mpich-devel libcmocka-devel openblas-devel gnuplot"
    say "  Arch       pacman -S base-devel mpich cmocka openblas gnuplot"
    say "  a cluster  module load gcc mpich autotools; then MPICC=mpicc $0"
}

# install_missing required-package... [-- wanted-package...]
# Installs by apt what is not there, as root or by sudo. Ends the script if a required one stays missing; of the others,
# it says so.
install_missing() {
    local package want='' required=yes missing=() wanted=() as=()
    for package in "$@"; do
        [ "$package" = -- ] && { required=no; continue; }
        provides "$package" && continue
        want="$want $package"
        if [ $required = yes ]; then missing+=("$package"); else wanted+=("$package"); fi
    done
    [ -n "$want" ] || return 0
    if [ -n "$NO_INSTALL" ]; then
        say "Not there, and --no-install was given:$want"
    elif have apt-get && { [ "$(id -u)" = 0 ] || have sudo; }; then
        if [ "$(id -u)" != 0 ]; then
            as=(sudo)
            # Without a terminal nobody can type a password
            [ -t 0 ] || as=(sudo -n)
        fi
        say "Installing:$want"
        if "${as[@]}" true; then
            export DEBIAN_FRONTEND=noninteractive
            "${as[@]}" apt-get -qq update || say 'apt-get update failed; going on with the package lists that are there'
            # shellcheck disable=SC2086
            "${as[@]}" apt-get -qq install -y --no-install-recommends $want >/dev/null ||
                for package in $want; do
                    "${as[@]}" apt-get -qq install -y --no-install-recommends "$package" >/dev/null ||
                        say "$package: not installed"
                done
        fi
        hash -r
    fi
    local still=() without=()
    for package in "${missing[@]}"; do provides "$package" || still+=("$package"); done
    for package in "${wanted[@]}"; do provides "$package" || without+=("$package"); done
    [ ${#without[@]} -eq 0 ] || say "Going on without: ${without[*]}"
    if [ ${#still[@]} -gt 0 ]; then
        say "Missing: ${still[*]}"
        say "On Debian and Ubuntu:  apt install ${still[*]} ${without[*]}"
        elsewhere
        exit 1
    fi
}

# Sets MPICC and MPIEXEC, if they are not: MPICH's by its own name where several MPIs are installed
choose_mpi() {
    if [ -z "$MPICC" ]; then
        if have mpicc.mpich; then
            MPICC=mpicc.mpich
            have mpiexec.mpich && MPIEXEC=${MPIEXEC:-mpiexec.mpich}
        elif have mpicc; then
            MPICC=mpicc
        else
            die 'no MPI compiler wrapper (mpicc) here; name one with MPICC=...'
        fi
    fi
    if [ -z "$MPIEXEC" ]; then
        case $MPICC in */*) MPIEXEC=${MPICC%/*}/mpiexec ;; esac
        have "$MPIEXEC" || MPIEXEC=mpiexec
        have "$MPIEXEC" || die 'no MPI launcher (mpiexec) here; name one with MPIEXEC=...'
    fi
    export MPICC MPIEXEC
    # Open MPI refuses both unless told
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
}

cores() { nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1; }
