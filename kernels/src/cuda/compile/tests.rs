//! Texts that NVRTC compiles and refuses, and the caches of compiled texts.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::cuda::find::Hints;

pub(in crate::cuda) const NVRTC: &str = "run `cargo xtask nvrtc`";

/// The wheel of the workspace, even where the machine has another library.
pub(in crate::cuda) fn hints() -> Hints {
    let wheel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nvrtc");
    Hints { named: None, beside: vec![wheel], loader: false }
}

/// A folder that is removed when it is dropped.
pub(in crate::cuda) fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

fn nvrtc() -> &'static Nvrtc {
    static FOUND: OnceLock<Nvrtc> = OnceLock::new();
    FOUND.get_or_init(|| Nvrtc::find(&hints()).unwrap_or_else(|error| panic!("{error}; {NVRTC}")))
}

fn compiler(disk: Cache) -> Compiler {
    Compiler { nvrtc: nvrtc(), disk, memory: Mutex::default() }
}

/// Compiles a text; on an error the test ends with NVRTC's message.
pub(in crate::cuda) fn compiled(text: &str, name: &str, arch: &str) -> Arc<Compiled> {
    let compiled = compiler(Cache::off()).compile(text, name, &target(arch));
    compiled.unwrap_or_else(|error| panic!("{name} for {arch}: {error}"))
}

fn target(arch: &str) -> Target {
    Target::new(arch.parse().unwrap())
}

const TEXT: &str = "\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#line 7 \"ring.coll\"
extern \"C\" __global__ __launch_bounds__(ROUNDELAY_THREADS) void Scale(__nv_bfloat16* p) {
    __shared__ float held[4];
    held[threadIdx.x & 3] = FACTOR;
    __syncthreads();
    p[threadIdx.x] = __float2bfloat16(__bfloat162float(p[threadIdx.x]) * held[1] + 1);
}
";

fn scale(arch: &str) -> Target {
    Target { defines: vec![("FACTOR".to_owned(), "3.0f".to_owned())], ..target(arch) }
}

#[test]
fn a_kernel_is_compiled_for_each_architecture() {
    let compiler = compiler(Cache::off());
    for arch in ["sm_80", "sm_90", "sm_90a", "sm_100"] {
        let compiled = compiler.compile(TEXT, "Scale", &scale(arch)).unwrap();
        assert!(compiled.cubin.starts_with(b"\x7fELF"), "{arch}");
        assert!(compiled.ptx.contains(&format!(".target {arch}")), "{}", compiled.ptx);
        assert!(compiled.ptx.contains(".maxntid 256"), "{}", compiled.ptx);
        // The product and the sum are rounded separately.
        assert!(!compiled.ptx.contains("fma."), "{}", compiled.ptx);
        let taken = compiled.resources("Scale").unwrap_or_else(|| panic!("{}", compiled.log));
        assert!(taken.registers > 0 && taken.shared >= 16, "{taken:?}");
        assert_eq!((taken.stack, taken.barriers, compiled.spills()), (0, 1, 0));
        assert_eq!(compiled.resources("Other"), None);
        assert_eq!(compiled.warnings, []);
        // Without an assembler the text is the same.
        assert_eq!(ptx(TEXT, "Scale", &scale(arch)).unwrap(), compiled.ptx);
    }
}

#[test]
fn spills_are_reported() {
    let text = "\
extern \"C\" __global__ __launch_bounds__(1024, 2) void Greedy(float* p) {
    float v[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = p[i * threadIdx.x];
    __syncthreads();
    for (int k = 0; k < int(p[0]); ++k)
        #pragma unroll
        for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i * 7 + 1) % 64] + p[k];
    #pragma unroll
    for (int i = 0; i < 64; ++i) p[i * threadIdx.x] = v[i];
}
";
    let compiled = compiler(Cache::off()).compile(text, "Greedy", &target("sm_90")).unwrap();
    assert!(compiled.spills() > 0, "{}", compiled.log);
    assert!(compiled.usage[0].spill_loads > 0, "{}", compiled.log);
}

#[test]
fn errors_and_warnings_name_the_algorithms_line() {
    let text = TEXT.replace("held[1]", "hold[1]").replace("__syncthreads();", "int unused;");
    let error = compiler(Cache::off()).compile(&text, "Scale", &scale("sm_80")).unwrap_err();
    assert_eq!(error.code().as_str(), "E0417");
    let Error::KernelRefused(refused) = &error else { panic!("{error}") };
    let errors: Vec<_> = refused.messages.iter().map(|m| (m.file.as_str(), m.line)).collect();
    assert!(errors.contains(&("ring.coll", 11)), "{}", refused.log);
    let shown = error.to_string();
    assert!(shown.contains("ring.coll:11: error: identifier \"hold\" is undefined\n"), "{shown}");
    assert!(!shown.contains("unused"), "{shown}");

    let text = TEXT.replace("__syncthreads();", "int unused;");
    let compiled = compiler(Cache::off()).compile(&text, "Scale", &scale("sm_80")).unwrap();
    let warnings: Vec<_> = compiled.warnings.iter().map(|m| (m.file.as_str(), m.line)).collect();
    assert_eq!(warnings, [("ring.coll", 10)]);
}

#[test]
fn a_text_that_cannot_be_one_is_refused() {
    let compiler = compiler(Cache::off());
    let error = compiler.compile("int\0", "K", &target("sm_80")).unwrap_err();
    assert_eq!(error.code().as_str(), "E0417");
    assert!(error.to_string().contains("a NUL byte at 3"), "{error}");
}

#[test]
fn an_architecture_that_nvrtc_lacks_is_refused() {
    let compiler = compiler(Cache::off());
    let error = compiler.compile(TEXT, "Scale", &scale("sm_99")).unwrap_err();
    assert_eq!(error.code().as_str(), "E0416");
    assert!(error.to_string().contains("sm_90, sm_100"), "{error}");
    // NVRTC knows the number, and not the letter.
    let error = compiler.compile(TEXT, "Scale", &scale("sm_80a")).unwrap_err();
    assert_eq!(error.code().as_str(), "E0416", "{error}");
}

#[test]
fn a_header_that_is_not_there_is_named() {
    let text = "#include <cuda_fp5.h>\n";
    let error = compiler(Cache::off()).compile(text, "K", &target("sm_80")).unwrap_err();
    assert_eq!(error.code().as_str(), "E0415", "{error}");
    let shown = error.to_string();
    assert!(shown.contains("CUDA's header cuda_fp5.h is not there\n  = note: not in "), "{shown}");
}

#[test]
fn what_was_compiled_is_not_compiled_again() {
    let folder = folder();
    let cache = Cache::in_folder(folder.path());
    let first = compiler(cache.clone());
    let compile = || first.compile(TEXT, "Scale", &scale("sm_90")).unwrap();
    // Threads that ask for the kernel at once wait for the thread that compiles it.
    let made = std::thread::scope(|threads| {
        let ranks = [(); 4].map(|()| threads.spawn(compile)).map(|rank| rank.join().unwrap());
        assert!(ranks.iter().all(|other| Arc::ptr_eq(other, &ranks[0])));
        ranks[0].clone()
    });
    assert!(Arc::ptr_eq(&made, &compile()));
    // A comment above it makes no other kernel.
    let commented = format!("// For 8 ranks.\n{TEXT}");
    let commented = first.compile(&commented, "Scale", &scale("sm_90")).unwrap();
    assert!(Arc::ptr_eq(&made, &commented));
    let files = || {
        let all = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        all.filter(|path| path.extension().is_some_and(|it| it == "kernel")).collect::<Vec<_>>()
    };
    let [entry] = &files()[..] else { panic!("{:?}", files()) };
    let written = fs::read(entry).unwrap();

    // Another process finds the entry, and takes it as it is.
    let key = |path: &Path| -> Key {
        let name = path.file_stem().unwrap().to_str().unwrap();
        std::array::from_fn(|i| u8::from_str_radix(&name[2 * i..2 * i + 2], 16).unwrap())
    };
    let mut marked = cache.load(&key(entry)).unwrap();
    marked.log.push_str("ring.coll(1): warning: from the cache\n");
    cache.store(&key(entry), &marked).unwrap();
    let found = compiler(cache.clone()).compile(TEXT, "Scale", &scale("sm_90")).unwrap();
    assert_eq!(found.warnings[0].text, "from the cache");

    // Half an entry is compiled anew, and then whole again.
    fs::write(entry, &written[..written.len() / 2]).unwrap();
    let again = compiler(cache.clone()).compile(TEXT, "Scale", &scale("sm_90")).unwrap();
    assert_eq!((&again.cubin, &again.ptx), (&made.cubin, &made.ptx));
    assert!(cache.load(&key(entry)).is_some());

    // A change of any input makes another entry.
    for (text, target) in [
        (TEXT.replace("+ 1", "+ 2"), scale("sm_90")),
        (TEXT.to_owned(), scale("sm_80")),
        (TEXT.to_owned(), Target { threads: 512, ..scale("sm_90") }),
        (TEXT.replace("FACTOR", "4"), target("sm_90")),
    ] {
        let before = files().len();
        compiler(cache.clone()).compile(&text, "Scale", &target).unwrap();
        assert_eq!(files().len(), before + 1);
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_said() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    let cache = Cache::in_folder(folder.path().join("file"));
    let compiled = compiler(cache).compile(TEXT, "Scale", &scale("sm_90")).unwrap();
    let why = compiled.not_kept.as_deref().unwrap();
    assert!(why.contains("cannot be written"), "{why}");
}

#[test]
fn another_library_than_the_bound_one_is_refused_with_both_paths() {
    nvrtc();
    let wheel = hints().find().unwrap().path.expect("a path");
    let other = wheel.with_file_name("libnvrtc.alt.so.13");
    let named = Hints { named: Some(other.clone().into()), ..hints() };
    let Err(error) = Nvrtc::find(&named) else { panic!("two libraries compile") };
    assert_eq!(error.code().as_str(), "E0415");
    let why = error.to_string();
    for path in [&other, &wheel] {
        assert!(why.contains(&path.canonicalize().unwrap().display().to_string()), "{why}");
    }
}
