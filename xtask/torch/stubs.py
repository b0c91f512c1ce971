"""Makes the torch of PyPI importable without NVIDIA's libraries, which are 2.7 GB and of no use on a CPU.

Usage: stubs.py FOLDER   (the folder `torch/lib` of an installed torch)

For every library of NVIDIA that torch's own ask for and that is not there, an empty one of that name is compiled beside
them. Each of its functions returns 100, which is CUDA's "no device", so torch finds no GPU and goes on.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

NAMES = r"lib(cu|nccl|nvrtc|nvshmem|nvJitLink)\w*\.so\.\d+"
# Functions that are asked for without the version that would say whose they are.
UNVERSIONED = {"libnccl": "nccl", "libcusparseLt": "cusparseLt", "libcufile": "cuFile", "libcuda": "cu[A-Z]"}


def read(option: str, library: pathlib.Path) -> str:
    """What `readelf` prints."""
    command = ["readelf", "--wide", option, str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def asked(libraries: list[pathlib.Path]) -> tuple[dict[str, dict[str, set[str]]], set[str]]:
    """For each library the functions that are asked for, by version; and those without one."""
    wanted: dict[str, dict[str, set[str]]] = {}
    plain: set[str] = set()
    for library in libraries:
        for name in re.findall(r"NEEDED.*\[(.*)\]", read("--dynamic", library)):
            if re.fullmatch(NAMES, name):
                wanted.setdefault(name, {})
    for library in libraries:
        # `Version: 1  File: libcublas.so.13  Cnt: 1`, then `Name: libcublas.so.13` of each version.
        owner, owners = "", {}
        for line in read("--version-info", library).splitlines():
            if found := re.search(r"File: (\S+)", line):
                owner = found[1]
            elif found := re.search(r"Name: (\S+)", line):
                owners[found[1]] = owner
        for symbol, version in re.findall(r"\bUND (\w+)(?:@(\S+))?", read("--dyn-syms", library)):
            if not version:
                plain.add(symbol)
            elif owners.get(version) in wanted:
                wanted[owners[version]].setdefault(version, set()).add(symbol)
    return wanted, plain


def compile_stub(path: pathlib.Path, versions: dict[str, set[str]]) -> None:
    """One library. The loader insists on versions where they were asked for."""
    with tempfile.TemporaryDirectory() as scratch:
        source, script = pathlib.Path(scratch, "stub.c"), pathlib.Path(scratch, "stub.map")
        symbols = sorted(set().union(*versions.values()))
        source.write_text("".join(f"long {symbol}(void) {{ return 100; }}\n" for symbol in symbols))
        nodes = (f"{name} {{ {' '.join(f'{symbol};' for symbol in sorted(of))} }};\n" for name, of in versions.items())
        script.write_text("".join(nodes))
        command = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}", "-o", str(path)]
        subprocess.run([*command, f"-Wl,--version-script,{script}", str(source)], check=True)


def main(folder: pathlib.Path) -> None:
    """Writes the libraries that are missing."""
    wanted, plain = asked(sorted(folder.glob("lib*.so")))
    missing = {name: versions for name, versions in wanted.items() if not (folder / name).exists()}
    for name, versions in missing.items():
        stem = name.split(".")[0]
        if stem in UNVERSIONED:
            versions.setdefault(stem, set()).update(s for s in plain if re.match(UNVERSIONED[stem], s))
        compile_stub(folder / name, versions)
    print(f"{len(missing)} libraries that torch asks for and does not need here, in {folder}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
