#!/bin/sh
# Makes the parts of the driver for tests with the compilers of this machine:
#   make.sh all FOLDER         the driver, the compiler that goes with it, and NCCL of our own; says with which variables
#                              programs run below them; and the program of calls/
#   make.sh kernel TEXT FILE   a kernel's text as a library for the driver
# Each is made under a name of its own and then moved to its place, for several may want it at once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..

make() {
    made=$1
    shift
    "$@" -shared -fPIC -pthread -o "$made.$$" -ldl
    mv "$made.$$" "$made"
}

# Compiles a kernel's text with the shim; what follows the text is of other kinds.
shim() {
    text=$1
    shift
    device=$root/kernels/device
    g++ -std=c++17 -O1 -fPIC -DROUNDELAY_SHIM -I "$device" -include "$device/host_shim.h" -include "$here/kernel.h" -w \
        -x c++ "$text" -x none "$@"
}

case "$1 $#" in
"all 2")
    mkdir -p "$2/lib" "$2/nccl"
    nvrtc=$(cd "$root/target/nvrtc/nvidia/cu13" && pwd) || {
        echo "run \`cargo xtask nvrtc\` first" >&2
        exit 1
    }
    # The driver is as good as what it was made of.
    driver=$(cat "$here"/libcuda/* "$here"/calls/* "$here/hash.h" "$0" | cksum)
    [ "$(cat "$2/lib/libcuda.made" 2>/dev/null)" = "$driver" ] && [ -e "$2/lib/libcuda.so.1" ] || {
        # As one text, for CUDA's header takes most of the time.
        printf '#include "%s"\n' "$here"/libcuda/*.cpp >"$2/lib/libcuda.$$.cpp"
        make "$2/lib/libcuda.so.1" g++ -std=c++17 -O1 -Wall -Wextra -Werror -I "$nvrtc/include" "$2/lib/libcuda.$$.cpp"
        rm "$2/lib/libcuda.$$.cpp"
        g++ -std=c++17 -O1 -Wall -Wextra -Werror -I "$nvrtc/include" "$here"/calls/*.cpp -o "$2/calls.$$" \
            -L "$2/lib" -l:libcuda.so.1 -pthread
        mv "$2/calls.$$" "$2/calls"
        make "$2/calls-kernels.so" gcc -std=c11 -O1 -Wall -Wextra -Werror "$here/calls/kernels.c"
        echo "$driver" >"$2/lib/libcuda.made.$$"
        mv "$2/lib/libcuda.made.$$" "$2/lib/libcuda.made"
    }
    make "$2/lib/libnvrtc.so" g++ -std=c++17 -O1 "$here/libnvrtc.cpp"
    make "$2/nccl/libnccl.so.2" gcc -std=c11 -O1 "$root/kernels/tests/nccl/nccl.c"
    folder=$(cd "$2" && pwd)
    # Where the compiler looks for CUDA's headers.
    ln -sfn "$nvrtc/include" "$folder/include"
    # Kernels are as good as what they were made of.
    kernels=$folder/kernels-$(cat "$root"/kernels/device/* "$here"/kernel.* "$0" | cksum | cut -d ' ' -f 1)
    for old in "$folder"/kernels-*; do
        [ "$old" = "$kernels" ] || rm -rf "$old"
    done
    mkdir -p "$kernels"
    # The part that all kernels have.
    [ -e "$kernels/kernel.o" ] || {
        shim "$here/kernel.cpp" -c -o "$kernels/kernel.o.$$"
        mv "$kernels/kernel.o.$$" "$kernels/kernel.o"
    }
    echo "LD_LIBRARY_PATH=$folder/lib:$nvrtc/lib"
    echo "ROUNDELAY_FAKE=$kernels"
    echo "ROUNDELAY_FAKE_MAKE=$here/make.sh"
    echo "ROUNDELAY_NCCL=$folder/nccl"
    echo "ROUNDELAY_NVRTC="
    echo "ROUNDELAY_CACHE=$kernels/cache"
    ;;
"kernel 3")
    make "$3" shim "$2" "$(dirname "$3")/kernel.o"
    ;;
*)
    sed -n 2,5p "$0" >&2
    exit 2
    ;;
esac
