# MPICH's own tests of collectives.
#
#     mpich.sh fetch              the source of Debian's package into the working directory, by apt's own sources
#     mpich.sh build SOURCE MPI CC    the tests of collectives of that source for an MPI, in the working directory
set -e
if [ "$1" = fetch ]; then
    mkdir -p sources lists/partial cache/archives/partial mpich
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [ ! -f "$file" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$file" > "sources/${file##*/}"
    done
    apt() {
        apt-get --quiet -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$PWD/sources" \
            -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD/cache" "$@"
    }
    apt update
    apt source --download-only mpich
    tar xf mpich_*.orig.tar.* --directory mpich --strip-components 1
else
    # C alone, and no test of starting processes.
    "$2/configure" --disable-cxx --disable-fortran --disable-romio --disable-spawn "--with-mpi=$3" "CC=$4"
    make --keep-going --directory util CFLAGS='-O0 -w'
    make --keep-going --directory dtpools CFLAGS='-O0 -w'
    # A test that an MPI cannot compile is missing, and fails without us, too.
    make --keep-going --directory coll CFLAGS='-O0 -w' || true
fi
