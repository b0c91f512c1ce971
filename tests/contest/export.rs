//! Algorithms of the library, laid out on a topology and exported.

use std::sync::Arc;

use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::Finding;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_core::verify::Proved;
use roundelay_export::contest::operator::{Operator, Profile, operator};
use roundelay_export::contest::{Export, SizeClass, contest};
use roundelay_tests::{compile, sources};
use roundelay_topology::Problem;

use crate::contest::executable::{Door, Executable};

/// An algorithm on a topology.
pub(crate) struct Placed {
    pub(crate) source: Source,
    pub(crate) proved: Proved,
    pub(crate) run: Configured,
}

/// The mesh of the contest.
pub(crate) const BROKEN: &str = "full_mesh(8) without (0, 1)";

/// Places an algorithm of the library with values for its parameters; the error is text.
pub(crate) fn place(
    name: &str,
    topology: &str,
    nranks: u32,
    settings: &[(&str, &str)],
) -> Result<Placed, String> {
    for (path, text) in sources("stdlib/library") {
        let source = Source::from_text(roundelay_tests::name(&path), &text);
        let Ok(program) = compile(&source, Frontend::File) else { continue };
        if let Some(found) = program.algorithms.iter().find(|a| a.name == name) {
            return placed(found.clone(), source, topology, nranks, settings);
        }
    }
    panic!("the library has no {name}")
}

/// The only algorithm of a text, on a mesh of that number of ranks.
pub(crate) fn place_text(text: &str, nranks: u32) -> Placed {
    let source = Source::from_text("entry.coll", text);
    let program = compile(&source, Frontend::File).expect("it makes sense");
    let mesh = format!("full_mesh({nranks})");
    let placed = placed(program.algorithms[0].clone(), source, &mesh, nranks, &[]);
    placed.unwrap_or_else(|report| panic!("{report}"))
}

fn placed(
    algorithm: roundelay_core::program::Program,
    source: Source,
    topology: &str,
    nranks: u32,
    settings: &[(&str, &str)],
) -> Result<Placed, String> {
    let mut run = Configured::new(algorithm, &source);
    let topology: Topology = topology
        .parse()
        .map_err(|problem: Problem| format!("{} [{}]", problem.title, problem.code))?;
    run.place_on(Arc::new(topology));
    for (name, value) in settings {
        run.set_text(name, value).expect("a value that fits");
    }
    let proved = run.schedule(nranks).and_then(Proved::new).map_err(|all| {
        let all = all.into_iter().map(|f| run.diagnostic(f, nranks).report(&source));
        all.collect::<Vec<_>>().join("\n")
    })?;
    Ok(Placed { source, proved, run })
}

/// Returns an executor with these classes for export.
fn of<'t>(name: &'t str, classes: &'t [(Option<u64>, &'t Placed)]) -> Export<'t> {
    let classes = classes.iter().map(|(below, placed)| SizeClass {
        below: *below,
        algorithm: &placed.run,
        schedule: placed.proved.schedule(),
        source: Some(&placed.source),
    });
    Export { name, docs: &[], dma_reduce: true, classes: classes.collect() }
}

fn told(all: Vec<(usize, Finding)>) -> String {
    let line = |(_, f): (usize, Finding)| format!("{} [{}]", f.title, f.code);
    all.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the C++ text of an executor with these classes; the error is text.
pub(crate) fn export(name: &str, classes: &[(Option<u64>, &Placed)]) -> Result<String, String> {
    contest(&of(name, classes)).map_err(told)
}

/// Returns the texts of an operator with these classes; the error is text.
pub(crate) fn export_operator(
    name: &str,
    classes: &[(Option<u64>, &Placed)],
    profile: Profile,
) -> Result<Operator, String> {
    operator(&of(name, classes), profile).map_err(told)
}

/// Returns the text of an operator with the functions by which the driver of the tests reaches it.
pub(crate) fn with_driver(text: &str, name: &str, profile: Profile, reduces: bool) -> String {
    let op = if reduces { "op, " } else { "" };
    let kernel = if profile == Profile::A2 {
        "nullptr".to_owned()
    } else {
        format!("operator_{name}::{name}Kernel")
    };
    format!(
        "{text}
#include \"operator.h\"
HcclResult CallOperator(const void* input, void* output, uint64_t count, HcclDataType type, HcclReduceOp op,
                        HcclComm comm, aclrtStream stream) {{
    (void)op;
    return ::{name}(input, output, count, type, {op}comm, stream);
}}
uint64_t OperatorPass(uint64_t count, HcclDataType type, uint64_t bytes) {{
    (void)count;
    return operator_{name}::MostBytes(bytes) / operator_{name}::SizeOf(type);
}}
unsigned int (*const OperatorKernel)(void*) = {kernel};
"
    )
}

/// An exported executor as a program, with the algorithms of its classes.
pub(crate) struct Exported {
    pub(crate) program: Executable,
    pub(crate) classes: Vec<(Option<u64>, Placed)>,
}

impl Exported {
    /// Exports and compiles.
    pub(crate) fn new(name: &str, classes: Vec<(Option<u64>, Placed)>) -> Self {
        let given: Vec<_> = classes.iter().map(|(below, placed)| (*below, placed)).collect();
        let text = export(name, &given).expect("it is exported");
        let program =
            Executable::compile(&text, name).unwrap_or_else(|log| panic!("{log}\n{text}"));
        Self { program, classes }
    }

    /// Exports and compiles an operator.
    pub(crate) fn operator(
        name: &str,
        classes: Vec<(Option<u64>, Placed)>,
        profile: Profile,
    ) -> Self {
        let given: Vec<_> = classes.iter().map(|(below, placed)| (*below, placed)).collect();
        let operator = export_operator(name, &given, profile).expect("it is exported");
        let reduces = classes[0].1.proved.schedule().collective.reduces();
        let text = with_driver(&operator.source, &operator.name, profile, reduces);
        let program = Executable::compile_for(Door::Hcomm(profile), &text, name);
        let program = program.unwrap_or_else(|log| panic!("{log}\n{text}"));
        Self { program, classes }
    }

    /// Returns the algorithm for `bytes` bytes, by nccl-tests' size.
    pub(crate) fn class(&self, bytes: u64) -> &Placed {
        let fits = |below: &Option<u64>| below.is_none_or(|below| bytes < below);
        &self.classes.iter().find(|(below, _)| fits(below)).expect("the last has no limit").1
    }
}
