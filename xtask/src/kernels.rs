//! `cargo xtask kernels`: communication kernels of other projects, in checkouts that are given by their paths, by
//! `roundelay kernel check`; and the table of the book. A folder of `xtask/kernels` has the harnesses of a project, in
//! which `checkout` is the path.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::{at, output, program, read, root, write};
use crate::install::Packages;
use crate::pages::{chosen, into_page, row};
use crate::switches::JobOptions;

const USAGE: &str = "\
usage: cargo xtask kernels [--vllm DIR] [--flashinfer DIR] [--mscclpp DIR] [--torch DIR] [--benchmark DIR]
  --vllm DIR        a checkout of vllm-project/vllm
  --flashinfer DIR  a checkout of flashinfer-ai/flashinfer
  --mscclpp DIR     a checkout of microsoft/mscclpp
  --torch DIR       a checkout of pytorch/pytorch
  --benchmark DIR   a checkout of togethercomputer/ParallelKernelBench that has solutions
  --budget TIME     the longest time for a case of a harness; 60s without it
  --program FILE    an optimized command to use instead of building one";

const PAGE: &str = "book/src/results/kernels.md";

/// CUDA's compiler from NVIDIA's wheels, with the libraries that device code includes. It takes files as they are, host
/// code included; the system's C++ compiler is its preprocessor.
const NVCC: Packages = Packages {
    folder: "nvcc",
    into: "--target",
    names: &[
        "nvidia-cuda-nvcc==13.0.*",
        "nvidia-cuda-crt==13.0.*",
        "nvidia-nvvm==13.0.*",
        "nvidia-cuda-cccl==13.0.*",
        "nvidia-cuda-runtime==13.0.*",
    ],
    files: &["nvidia/cu13/bin/nvcc", "nvidia/cu13/include/cccl/cuda/atomic"],
};

/// A project: its option without the dashes, which is its folder, and its name in the table.
const PROJECTS: [(&str, &str); 5] = [
    ("vllm", "vLLM"),
    ("flashinfer", "FlashInfer"),
    ("mscclpp", "MSCCL++"),
    ("torch", "PyTorch"),
    ("benchmark", "ParallelKernelBench"),
];

/// The part of a file that is device code, where host code around it needs a whole library.
struct Slice {
    project: &'static str,
    file: &'static str,
    /// The file that it becomes, beside the harnesses.
    into: &'static str,
    /// The beginning of its first line, and of the line behind it.
    first: &'static str,
    behind: &'static str,
}

const OPS: &str = "torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu";
const SLICES: [Slice; 9] = [
    Slice {
        project: "torch",
        file: OPS,
        into: "one_shot.cuh",
        first: "constexpr size_t one_shot_all_reduce_max_num_blocks",
        behind: "at::Tensor one_shot_all_reduce_out_impl(",
    },
    Slice {
        project: "torch",
        file: OPS,
        into: "two_shot.cuh",
        first: "template <\n    typename T,\n    int alignment,\n    int k_world_size,\n    bool reduce_scatter",
        behind: "at::Tensor two_shot_all_reduce_impl(",
    },
    Slice {
        project: "benchmark",
        file: "solutions_cuda_bf16_h100_8_google_gemini-3-pro-preview/2_allgather_cuda.py",
        into: "all_gather_gemini.cuh",
        first: "__global__ void allgather_pull_kernel(",
        behind: "void launch_allgather(",
    },
    Slice {
        project: "benchmark",
        file: "solutions_cuda_bf16_h100_8_anthropic_claude-opus-4-7/2_allgather_cuda.py",
        into: "all_gather_claude.cuh",
        first: "__global__ void allgather_copy_kernel(",
        behind: "void launch_allgather_copy(",
    },
    Slice {
        project: "benchmark",
        file: "solutions_cuda_bf16_h100_8_openai_gpt-5.5/2_allgather_cuda.py",
        into: "all_gather_gpt.cuh",
        first: "__device__ __forceinline__ void send_signal_release(",
        behind: "void launch_allgather_push(",
    },
    Slice {
        project: "benchmark",
        file: "solutions_cuda_bf16_h100_8_google_gemini-3-pro-preview/8_alltoall_cuda.py",
        into: "all_to_all_gemini.cuh",
        first: "__global__ void pull_all_to_all_kernel(",
        behind: "void launch_pull_all_to_all(",
    },
    Slice {
        project: "benchmark",
        file: "solutions_cuda_bf16_h100_8_anthropic_claude-opus-4-7/8_alltoall_cuda.py",
        into: "all_to_all_claude.cuh",
        first: "__global__ void all_to_all_gather_kernel(",
        behind: "void launch_all_to_all(",
    },
    Slice {
        project: "benchmark",
        file: "solutions_cuda_bf16_h100_8_google_gemini-3-pro-preview/7_reducescatter_cuda.py",
        into: "reduce_scatter_gemini.cuh",
        first: "__global__ void reducescatter_multimem_bf16_kernel(",
        behind: "__global__ void reducescatter_fallback_bf16_kernel(",
    },
    Slice {
        project: "benchmark",
        file: "solutions_cuda_bf16_h100_8_google_gemini-3-pro-preview/1_allreduce_cuda.py",
        into: "all_reduce_gemini.cuh",
        first: "__device__ __forceinline__ void send_signal_relaxed(",
        behind: "template <typename scalar_t>",
    },
];

/// Checks the kernels of the projects that are given, and writes their tables.
pub(crate) fn check(args: &[&str]) -> Result<(), String> {
    let options = JobOptions::read(USAGE, args)?;
    if !PROJECTS.iter().any(|(name, _)| options.has(&format!("--{name}"))) {
        return Err(USAGE.to_owned());
    }
    let command = chosen(options.path("--program"))?;
    let nvcc = NVCC.install(&root())?.join("nvidia/cu13/bin");
    for (name, title) in PROJECTS {
        let Some(checkout) = options.path(&format!("--{name}")) else { continue };
        let checkout = fs::canonicalize(&checkout).map_err(at(&checkout))?;
        let version = version(&checkout)?;
        let folder = laid_out(name, &checkout)?;
        let budget = options.text("--budget").unwrap_or("60s");
        let mut table = "|---|---|---|---|---:|---:|\n".to_owned();
        row(&mut table, &format!("| {version} | | | | | |"));
        rows(&mut table, &command, &nvcc, (&folder, budget))?;
        let head = format!("| {title} | ranks | verdict | relies on | runs | seconds |");
        into_page(PAGE, &head, &table)?;
        if name == "benchmark" {
            let mut table = "|---|---:|---|---|---:|\n".to_owned();
            judged(&mut table, &command, &nvcc, (&folder, budget))?;
            let head = "| judged | score | verdict | first finding | seconds |";
            into_page(PAGE, head, &table)?;
        }
    }
    Ok(())
}

/// The commit of a checkout, or the version of a package's sources.
fn version(checkout: &Path) -> Result<String, String> {
    let mut git = program("git", &["rev-parse", "--short=12", "HEAD"]);
    if checkout.join(".git").exists() {
        return output(git.current_dir(checkout)).map(|commit| commit.trim().to_owned());
    }
    let about = read(&checkout.join("PKG-INFO"))
        .map_err(|why| format!("{why}: neither a checkout nor a package's sources"))?;
    let version = about.lines().find_map(|line| line.strip_prefix("Version: "));
    version.map(str::to_owned).ok_or_else(|| format!("{} has no version", checkout.display()))
}

/// Lays out the harnesses of a project beside its checkout, below `target/`.
fn laid_out(name: &str, checkout: &Path) -> Result<PathBuf, String> {
    let folder = root().join("target/kernels").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    copied(&root().join("xtask/kernels").join(name), &folder)?;
    let link = folder.join("checkout");
    #[cfg(unix)]
    std::os::unix::fs::symlink(checkout, &link).map_err(at(&link))?;
    #[cfg(windows)]
    std::os::windows::fs::symlink_dir(checkout, &link).map_err(at(&link))?;
    for slice in SLICES.iter().filter(|slice| slice.project == name) {
        let text = read(&checkout.join(slice.file))?;
        write(&folder.join(slice.into), &slice.of(&text)?)?;
    }
    Ok(folder)
}

fn copied(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(at(to))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?.path();
        let into = to.join(entry.file_name().unwrap_or_default());
        if entry.is_dir() {
            copied(&entry, &into)?;
        } else {
            fs::copy(&entry, &into).map_err(at(&entry))?;
        }
    }
    Ok(())
}

impl Slice {
    /// The part of the file's text, with the number of its first line.
    fn of(&self, text: &str) -> Result<String, String> {
        let lacks = |what: &str| format!("{} has no line that begins with `{what}`", self.file);
        let start = text.find(self.first).ok_or_else(|| lacks(self.first))?;
        let length = text[start..].find(self.behind).ok_or_else(|| lacks(self.behind))?;
        let line = text[..start].lines().count() + 1;
        let part = &text[start..start + length];
        Ok(format!("#line {line} \"checkout/{}\"\n{part}", self.file))
    }
}

/// Checks all harnesses of a folder, each case within a time.
fn rows(
    table: &mut String,
    command: &Path,
    nvcc: &Path,
    (folder, budget): (&Path, &str),
) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(at(folder))?.flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".kernel.toml"));
    names.sort_unstable();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(nvcc.to_owned()).chain(std::env::split_paths(&path)));
    for name in names {
        let mut check = program(&command.to_string_lossy(), &["--quiet", "kernel", "check", &name]);
        check.args(["--format", "json", "--budget", budget]);
        check.current_dir(folder).env("PATH", path.as_ref().map_err(ToString::to_string)?);
        let report = report(&mut check)?;
        if let Some(wrong) = report["diagnostics"].get(0) {
            return Err(format!("{name}: {}", wrong["title"]));
        }
        for verdict in report["verdicts"].as_array().into_iter().flatten() {
            row(table, &described(&name, verdict));
        }
    }
    Ok(())
}

/// Judges the candidates of a folder, each within a time.
fn judged(
    table: &mut String,
    command: &Path,
    nvcc: &Path,
    (folder, budget): (&Path, &str),
) -> Result<(), String> {
    let mut judge = program(&command.to_string_lossy(), &["--quiet", "kernel", "judge", "."]);
    judge.args(["--format", "json", "--budget", budget, "--nvcc"]).arg(nvcc.join("nvcc"));
    for candidate in
        report(judge.current_dir(folder))?["candidates"].as_array().into_iter().flatten()
    {
        if let Some(wrong) = candidate["diagnostics"].get(0) {
            return Err(format!("{}: {}", candidate["name"], wrong["title"]));
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cases = candidate["cases"].as_array();
        let first = cases.into_iter().flatten().find(|case| case["name"] == candidate["first"]);
        let why = first.map_or(String::new(), |case| text(&case["reason"]));
        let score = 100.0 * candidate["score"].as_f64().unwrap_or_default();
        let seconds = candidate["seconds"].as_f64().unwrap_or_default();
        let (name, verdict) = (text(&candidate["name"]), text(&candidate["verdict"]));
        row(table, &format!("| `{name}` | {score:.0} % | {verdict} | {why} | {seconds:.0} |"));
    }
    Ok(())
}

/// The JSON that a command prints. An error of a kernel is no failure of the check.
fn report(command: &mut Command) -> Result<Value, String> {
    let done = command.output().map_err(|why| format!("{command:?}: {why}"))?;
    serde_json::from_slice(&done.stdout)
        .map_err(|why| format!("{command:?}: {why}\n{}", String::from_utf8_lossy(&done.stderr)))
}

/// The row of a verdict.
fn described(name: &str, verdict: &Value) -> String {
    let name = name.trim_end_matches(".kernel.toml");
    let case = verdict["case"].as_str().map_or(String::new(), |case| format!(", {case}"));
    let cases = verdict["cases"].as_array();
    let mut ranks: Vec<u64> =
        cases.into_iter().flatten().filter_map(|case| case["ranks"].as_u64()).collect();
    ranks.dedup();
    let ranks: Vec<String> = ranks.iter().map(u64::to_string).collect();
    let runs: u64 = cases.into_iter().flatten().filter_map(|case| case["seeds"].as_u64()).sum();
    let names = |names: &Value| {
        let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    let finding = &verdict["findings"][0];
    let message = finding["message"].as_str().unwrap_or_default();
    let (found, relies) = match verdict["state"].as_str().unwrap_or_default() {
        "clean" => ("no finding".to_owned(), "nothing".to_owned()),
        "relies" => ("no finding".to_owned(), names(&verdict["assumptions"]["used"])),
        state => (format!("**{state}**: {message}"), names(&finding["cured_by"])),
    };
    let seconds = verdict["seconds"].as_f64().unwrap_or_default();
    format!(
        "| `{name}`{case} | {} | {found} | {relies} | {runs} | {seconds:.0} |",
        ranks.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_at_its_line() {
        let [.., slice] = SLICES;
        let text = format!("a\nb\n{}x\ny\n{}z", slice.first, slice.behind);
        let part = slice.of(&text).expect("both lines are there");
        assert_eq!(part, format!("#line 3 \"checkout/{}\"\n{}x\ny\n", slice.file, slice.first));
        let wrong = slice.of("a\nb").expect_err("no line");
        assert!(wrong.contains(slice.first), "{wrong}");
    }

    #[test]
    fn a_row_tells_what_a_kernel_relies_on() {
        let runs = serde_json::json!([{ "ranks": 2, "seeds": 3 }, { "ranks": 2, "seeds": 4 }]);
        let mut verdict = serde_json::json!({
            "case": "f32", "cases": runs, "state": "relies", "seconds": 1.6,
            "assumptions": { "used": ["vec8", "polls-acquire"] },
        });
        let row = described("a.kernel.toml", &verdict);
        assert_eq!(row, "| `a`, f32 | 2 | no finding | vec8, polls-acquire | 7 | 2 |");
        verdict["state"] = "error".into();
        verdict["findings"] = serde_json::json!([{ "message": "a race", "cured_by": null }]);
        let row = described("a.kernel.toml", &verdict);
        assert_eq!(row, "| `a`, f32 | 2 | **error**: a race |  | 7 | 2 |");
    }
}
