//! The driver, and kernels for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use roundelay_core::emit::cuda::Kernel;
use roundelay_kernels::cuda::{Target, fit};
use roundelay_tests::root;

/// Where the driver and its kernels are.
pub(crate) fn folder() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let folder = target.join("driver");
    std::fs::create_dir_all(&folder).expect("a folder below target");
    folder.canonicalize().expect("it is there")
}

fn gxx(args: &[&str], texts: &[&Path], made: &Path) {
    // Under a name of its own until it is whole: several tests may want it.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nth = NEXT.fetch_add(1, Ordering::Relaxed);
    let making = made.with_extension(format!("{}-{nth}", std::process::id()));
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-pthread"]).args(args).args(texts);
    let ran = command.arg("-o").arg(&making).arg("-ldl").output().expect("g++ is installed");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    std::fs::rename(&making, made).expect("it was made");
}

/// The driver, made once by a process.
pub(crate) fn driver() -> &'static Path {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        let text = root().join("tests/driver/libcuda.cpp");
        gxx(&[], &[&text], &folder().join("libcuda.so.1"));
        folder()
    });
    &MADE
}

/// NCCL's library of our own, below which memory and streams are the driver's: where it is.
pub(crate) fn nccl() -> &'static Path {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        let (text, folder) = (root().join("kernels/tests/nccl/nccl.c"), folder().join("nccl"));
        std::fs::create_dir_all(&folder).expect("a folder below target");
        let made = folder.join("libnccl.so.2");
        let mut command = Command::new("gcc");
        command.args(["-std=c11", "-O1", "-shared", "-fPIC", "-pthread"]).arg(text);
        let ran = command.arg("-o").arg(&made).arg("-ldl").output().expect("gcc is installed");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        made
    });
    &MADE
}

/// FNV-1a of the machine code, by which the driver finds a kernel.
fn hash(code: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    code.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Makes a kernel for the driver, as a plan will compile it.
pub(crate) fn kernel(kernel: &Kernel, devices: usize) {
    let mut target = Target::new("sm_90".parse().expect("an architecture"));
    if devices > 1 {
        target.defines.push(("ROUNDELAY_SCOPE_SYS".into(), "1".into()));
    }
    let fitted = fit(&kernel.text, &kernel.name, &target)
        .unwrap_or_else(|error| panic!("{error}; run `cargo xtask nvrtc`"));
    let folder = folder();
    let made = folder.join(format!("{:016x}.so", hash(&fitted.compiled.cubin)));
    let text = made.with_extension("cu");
    std::fs::write(&text, &kernel.text).expect("a file below target");
    let (device, shell) = (root().join("kernels/device"), root().join("tests/driver/kernel.cpp"));
    let shim = device.join("host_shim.h");
    let [include, shim] = [&device, &shim].map(|path| path.to_str().expect("a path in UTF-8"));
    let args = ["-DROUNDELAY_SHIM", "-I", include, "-include", shim, "-x", "c++"];
    gxx(&args, &[&text, &shell], &made);
}
