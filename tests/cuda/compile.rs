//! NVRTC takes every kernel, for the architectures that are in use; nothing spills, and what it makes keeps the rules of
//! the lint of PTX.

use std::fmt::Write as _;

use expect_test::expect_file;

use roundelay::{DType, Level, ReduceOp, select};
use roundelay_core::optimize::Goal;
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_kernels::cuda::{Arch, Fitted, Resources, Target, fit};
use roundelay_tests::{kinds, root, taken, takes_all};

use super::runs::{code, loops, named, proved, spec};
use super::sweep::Sweep;

/// The columns of the kernels' resources.
const HEAD: &str =
    "algorithm | registers | stack, bytes | CTAs a multiprocessor | KiB of loads under way there\n";

/// Compiles a kernel, and appends the errors of the result to `wrong`.
fn compiled(kernel: &Kernel, arch: &str, wrong: &mut String) -> Option<Fitted> {
    let arch: Arch = arch.parse().expect("an architecture");
    let element = kernel.spec.element.name();
    let what = format!("{} {element} {} for {arch}", kernel.name, kernel.spec.op);
    match fit(&code(&kernel.text), &kernel.name, &Target::new(arch)) {
        Ok(fitted) => {
            let compiled = &fitted.compiled;
            assert!(!compiled.usage.is_empty(), "{what}: NVRTC does not say what it takes");
            for usage in compiled.usage.iter().filter(|u| u.spill_stores + u.spill_loads > 0) {
                let _ = writeln!(wrong, "{what}: {usage}");
            }
            match roundelay_ptx::lint(&compiled.ptx) {
                Ok(findings) => {
                    for finding in findings {
                        let _ = writeln!(wrong, "{what}: {finding}");
                    }
                }
                Err(error) => {
                    let _ = writeln!(wrong, "{what}: {error}");
                }
            }
            for warning in &compiled.warnings {
                let _ = writeln!(wrong, "{what}: {warning:?}");
            }
            Some(fitted)
        }
        Err(error) => {
            let _ = writeln!(wrong, "{what}: {error}");
            None
        }
    }
}

/// Whether the kernels that a usual run leaves out are compiled, too: new golden files have all rows.
fn whole() -> bool {
    takes_all() || std::env::var_os("UPDATE_EXPECT").is_some()
}

/// Checks the rows of a golden file: all of them, or those of the kernels that a usual run compiles.
fn assert_rows(file: &str, head: &str, rows: &str) {
    let path = root().join("tests/golden").join(file);
    if whole() {
        expect_file![path].assert_eq(&format!("{head}{rows}"));
        return;
    }
    let golden = std::fs::read_to_string(path).expect("a golden file");
    let new: Vec<_> = rows.lines().filter(|row| !golden.lines().any(|line| line == *row)).collect();
    assert!(new.is_empty(), "not in {file}; UPDATE_EXPECT=1 writes it anew:\n{}", new.join("\n"));
}

/// Compiles the algorithms of a sweep for the most common GPU, with the resources of each.
#[test]
fn every_algorithm_compiles_and_nothing_spills() {
    let mut wrong = String::new();
    let mut rows = String::new();
    for (_, kernel) in swept() {
        if let Some(fitted) = compiled(&kernel, "sm_90", &mut wrong) {
            rows += &row(&kernel.name, &fitted);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(rows.lines().count() > 5, "{rows}");
    assert_rows("registers.txt", HEAD, &rows);
}

/// Compiles them for the other GPUs in turn.
#[test]
fn algorithms_compile_for_other_gpus_and_nothing_spills() {
    let mut wrong = String::new();
    let mut compiled = |kernel: &Kernel, arch| compiled(kernel, arch, &mut wrong).is_some();
    let mut count = 0;
    for (turn, kernel) in swept() {
        for (at, arch) in ["sm_80", "sm_100"].into_iter().enumerate() {
            count += usize::from(taken(turn + at, 6) && compiled(&kernel, arch));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 1, "{count}");
}

/// The kernels of the library that a run compiles, each with its number.
fn swept() -> Vec<(usize, Kernel)> {
    let mut sweep = Sweep::default();
    let kernels = select::library().iter().enumerate().map(|(turn, algorithm)| {
        let proved = proved(algorithm, 8).expect("the library takes 8 ranks");
        (turn, loops(algorithm, &proved, spec(algorithm)))
    });
    kernels.filter(|(_, kernel)| sweep.tries(kernel) || whole()).collect()
}

/// Returns the row of a kernel's resources of a multiprocessor.
fn row(name: &str, Fitted { compiled, target }: &Fitted) -> String {
    let Resources { registers, stack, .. } = compiled.resources(name).expect("it was compiled");
    let (ctas, under_way) = (target.ctas, target.bytes_in_flight() / 1024);
    format!("{name} | {registers} | {stack} | {ctas} | {under_way}\n")
}

/// Every dtype with every op, on the architectures in turn; fp8 where they have it. A usual run has a quarter of the pairs,
/// in which each dtype and each op is.
#[test]
fn every_dtype_and_op_compiles_and_nothing_spills() {
    let algorithm = named("OneShotMeshAllReduce");
    let proved = proved(algorithm, 8).expect("any rank count will do");
    let mut wrong = String::new();
    let mut turn = 0;
    for (element, op) in kinds() {
        let dtype = DType::ALL.iter().position(|other| *other == element).expect("a dtype");
        let nth = ReduceOp::ALL.iter().position(|other| *other == op).expect("an op");
        // Each row and each column of the pairs has one in four; an op of integers is in one pair alone.
        if !(whole() || op.is_for_integers() || taken(dtype + nth, 4)) {
            continue;
        }
        turn += 1;
        let kernel = loops(algorithm, &proved, Spec { element, op, ..spec(algorithm) });
        let archs: &[&str] = match element {
            DType::F8E4M3 | DType::F8E5M2 => &["sm_90", "sm_100"],
            _ => &["sm_80", "sm_90", "sm_100"],
        };
        compiled(&kernel, archs[turn % archs.len()], &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn lines_compile_and_nothing_spills() {
    let lined = [
        ("NcclRingAllReduce", DType::Bf16, Protocol::Ll),
        ("NcclRingAllReduce", DType::F32, Protocol::Ll128),
        ("PushedOneShotAllReduce", DType::F32, Protocol::Ll),
        ("NcclRingAllReduce", DType::U8, Protocol::Ll),
        ("NcclRingAllReduce", DType::F64, Protocol::Ll),
        ("PushedMeshAllReduce", DType::F32, Protocol::Ll),
        ("NcclRingAllReduce", DType::U8, Protocol::Ll128),
        ("PushedOneShotAllReduce", DType::F32, Protocol::Ll128),
    ];
    fit_all(
        "lines",
        lined.map(|(name, element, protocol)| {
            let algorithm = named(name);
            let proved = proved(algorithm, 8).expect("any rank count will do");
            let spec = Spec { element, protocol, ..spec(algorithm) };
            let kind = format!("{}, {}", element.name(), protocol.name());
            (kind, loops(algorithm, &proved, spec))
        }),
    );
}

#[test]
fn tables_compile_and_nothing_spills() {
    let names = ["MeshAllReduce", "OneShotMeshAllReduce", "TreeAllReduce", "RingAllReduce"];
    fit_all(
        "tables",
        names.map(|name| {
            let algorithm = named(name);
            let proved = proved(algorithm, 8).expect("any rank count will do");
            let goal = Goal { level: Level::O2, callers: Callers::One, reassociate: false };
            let made = proved.optimize(goal).expect("the result is proved");
            let kernel = Kernel::of_table(&made, spec(algorithm)).expect("floats have sums");
            ("f32, table".to_owned(), kernel)
        }),
    );
}

/// Compiles kernels of a kind, of which a usual run has two, with the resources of each.
fn fit_all<const N: usize>(which: &str, kernels: [(String, Kernel); N]) {
    let mut wrong = String::new();
    let mut rows = String::new();
    for (kind, kernel) in kernels.into_iter().take(if whole() { N } else { 2 }) {
        if let Some(fitted) = compiled(&kernel, "sm_90", &mut wrong) {
            let _ = write!(rows, "{kind} | {}", row(&kernel.name, &fitted));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_rows(&format!("registers_{which}.txt"), &format!("elements, kernel | {HEAD}"), &rows);
}
