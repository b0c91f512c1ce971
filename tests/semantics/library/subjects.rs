//! The listed algorithms of the library, ready to be given values; and the list held against the sources.

use roundelay::Algorithm;
use roundelay_core::check::Frontend;
use roundelay_core::program::ir::Kind;
use roundelay_core::syntax::Source;
use roundelay_tests::compile;

use super::values::Values;

/// An algorithm of the library, to be given values.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    pub(super) family: &'static str,
    pub(super) name: &'static str,
    /// Whether the family promises to admit that number of ranks.
    pub(super) admits: fn(u32) -> bool,
    pub(super) params: &'static [&'static str],
    /// The algorithm with all its parameters set.
    pub(super) with: fn(&Values) -> Box<dyn Algorithm>,
}

fn any(_: u32) -> bool {
    true
}

fn power_of_two(nranks: u32) -> bool {
    nranks.is_power_of_two()
}

macro_rules! list {
    ($($family:ident { $($name:ident $admits:ident [$($param:ident)*])* })*) => {
        [$($(Subject {
            family: stringify!($family),
            name: stringify!($name),
            admits: $admits,
            params: &[$(stringify!($param)),*],
            with: |values| {
                let _values = values.suited(&[$(stringify!($param)),*]);
                Box::new(roundelay::library::$name::new()$(.$param(_values.$param.clone()))*)
            },
        }),*),*].to_vec()
    };
}

/// Returns all subjects.
pub(super) fn all() -> Vec<Subject> {
    roundelay_tests::library!(list)
}

/// Returns the subject of that name.
pub(super) fn named(name: &str) -> Subject {
    let found = all().into_iter().find(|subject| subject.name == name);
    found.unwrap_or_else(|| panic!("{name} is not listed"))
}

/// Returns the subjects of one file.
pub(super) fn family(name: &str) -> Vec<Subject> {
    all().into_iter().filter(|subject| subject.family == name).collect()
}

/// The list against the files: a new algorithm, a new file and a new parameter each fail here until they are listed.
#[test]
fn the_list_is_the_library() {
    let mut listed = Vec::new();
    for subject in all() {
        listed.push((subject.family.to_owned(), subject.name.to_owned(), subject.params.join(" ")));
    }
    let mut declared = Vec::new();
    for (file, text) in roundelay::library::SOURCES {
        let source = Source::from_text(*file, text);
        for algorithm in compile(&source, Frontend::File).expect("the library is right").algorithms
        {
            let params = algorithm.params.iter().map(|param| algorithm.var(param.var));
            let varied = params.filter(|param| param.kind != Kind::Topology);
            let names: Vec<_> = varied.map(|param| param.name.as_str()).collect();
            let family = file.strip_suffix(".coll").expect("a source's name");
            declared.push((family.to_owned(), algorithm.name.clone(), names.join(" ")));
        }
    }
    assert_eq!(listed, declared);
}
