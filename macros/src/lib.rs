//! The procedural macros of Roundelay, as the crate `roundelay` exports them. The work is done in `roundelay-core`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proc_macro::TokenStream;
use proc_macro2::{Ident, Span, TokenStream as TokenStream2, TokenTree};
use quote::quote;
use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::{Dependencies, SourceFiles};
use roundelay_core::diagnostics::{Code, Diagnostic, Severity};
use roundelay_core::expansion::Outcome;
use roundelay_core::expansion::rust::{self, Origin};
use roundelay_core::program::CompiledSource;
use roundelay_core::source::Span as Place;
use roundelay_core::syntax::used_files::UsedFiles;
use roundelay_core::syntax::{Source, read_limit};
use roundelay_core::{compile_with, expansion, syntax};
use roundelay_library::SOURCES;

/// Makes structs of algorithms in the language of step loops, each of which implements `roundelay::Algorithm`.
///
/// ```text
/// roundelay::collective! {
///     /// Every rank pulls root's input at once.
///     pub algorithm Star(root: Rank = 0) -> Broadcast { … }
/// }
///
/// let plan = Star::new().root(2).plan(4, 1000, DType::F32, ReduceOp::Sum)?;
/// ```
///
/// The struct has the name of the algorithm. `new()` takes the values of parameters that have no default, a method with
/// the name of a parameter sets it, and `roundelay::ToPlan` has the methods that make plans of the struct. Doc comments
/// become the doc comments of the struct. `use "other.coll";` inside brings in the algorithms of a file, whose path is
/// relative to the Rust source, and the algorithms of the library can be called by name. The language is on one page of
/// the book, `book/src/reference/language.md`.
///
/// # Errors
/// The program is checked when Rust compiles it, and proved for small numbers of ranks. An error in the program is an
/// error of rustc at the exact tokens, with its code: E00xx and E01xx for text, names and types, E02xx and E03xx for
/// errors that show at a number of ranks. A plan proves the number of ranks in use, even if the macro has proved it
/// already.
#[proc_macro]
pub fn collective(input: TokenStream) -> TokenStream {
    block(input.into()).into()
}

/// Makes types of executors, each of which implements `roundelay::executor::Executor`: one collective on one
/// topology, with an algorithm for each range of sizes.
///
/// ```text
/// roundelay::executor! {
///     /// AllReduce on four cards.
///     pub executor Four for AllReduce {
///         topology: full_mesh(4);
///         when bytes < 64 KiB => OneShotMeshAllReduce;
///         otherwise => RingAllReduce;
///     }
/// }
///
/// let ran = Framework::new().run(&Four, 1000, ReduceOp::Sum, &inputs, &mut outputs)?;
/// ```
///
/// The block may also hold algorithms, as the block of `collective!` does, and its classes may name these algorithms or
/// the library's. Sizes are in bytes as nccl-tests counts them: the larger of a rank's two buffers. The book's chapter
/// is `book/src/guide/contest.md`.
///
/// # Errors
/// Every class is laid out on the topology and proved when Rust compiles it. An error is an error of rustc at the exact
/// tokens: E07xx for settings and size classes, and the errors of `collective!`.
#[proc_macro]
pub fn executor(input: TokenStream) -> TokenStream {
    block(input.into()).into()
}

/// The name of a block in the macro's own words.
const BLOCK: &str = "the macro's body";

fn block(input: TokenStream2) -> TokenStream2 {
    let (source, spans) = Source::from_macro(BLOCK, input);
    let start = |span: Place| at(&spans, span.lo).0;
    let origin = Origin {
        file: quote!(::core::file!()),
        locate: &|span| source.location(span),
        span: &start,
    };
    let range = |span: Place| (start(span), at(&spans, span.hi.saturating_sub(1)).1);
    let used = Used::beside(Span::call_site(), source.name());
    match used.compile(&source, Frontend::Macro).and_then(|checked| proved(checked, &source)) {
        Ok((checked, _)) if typed(&checked) => rust::stubs(&syntax::parse(&source).0, &start),
        Ok((checked, warnings)) => {
            let rebuild = used.rebuild();
            let items = rust::expand(&checked, &origin);
            let warn = |w: &Diagnostic| warning(start(w.primary), w.code, &w.message(&source));
            let warnings = warnings.iter().map(warn);
            quote!(#rebuild #items #(#warnings)*)
        }
        Err(errors) => {
            let stubs = rust::stubs(&syntax::parse(&source).0, &start);
            let errors = errors.iter();
            let errors = errors.map(|error| spanned(range(error.primary), &error.message(&source)));
            let rebuild = used.rebuild();
            quote!(#rebuild #stubs #(#errors)*)
        }
    }
}

/// Makes structs of the algorithms of a `.coll` file, as `collective!` makes them of a block.
///
/// ```text
/// roundelay::include_collective!("algorithms/star.coll");
/// ```
///
/// The path is relative to the Rust source that holds the macro call. Rust compiles the source again when the file
/// changes. The same file serves the command line: `roundelay run algorithms/star.coll`.
///
/// # Errors
/// E0001 where the file cannot be read; an error in the file is an error at the macro, with the line of the file.
#[proc_macro]
pub fn include_collective(input: TokenStream) -> TokenStream {
    let path = match syn::parse::<syn::LitStr>(input) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error().into(),
    };
    let (name, place) = (path.value(), path.span());
    let file = find(place, &name);
    let bytes = match read_limit::file(&file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("E0001: cannot read `{}`: {error}", file.display());
            return syn::Error::new(place, message).to_compile_error().into();
        }
    };
    let items = included(&Source::from_bytes(&name, &bytes), place);
    quote!(const _: &[u8] = ::core::include_bytes!(#path); #items).into()
}

/// Makes structs of the algorithms of a file of the library. Only the crate `roundelay` itself uses it.
#[doc(hidden)]
#[proc_macro]
pub fn include_library(input: TokenStream) -> TokenStream {
    let path = syn::parse_macro_input!(input as syn::LitStr);
    let name = path.value();
    match SOURCES.iter().find(|(file, _)| *file == name) {
        Some((_, text)) => included(&Source::from_text(&name, text), path.span()).into(),
        None => syn::Error::new(path.span(), "no file of the library").to_compile_error().into(),
    }
}

/// Expands the algorithms of a file, all with the span of the place where the file is named.
fn included(source: &Source, place: Span) -> TokenStream2 {
    let name = source.name();
    let origin =
        Origin { file: quote!(#name), locate: &|span| source.location(span), span: &|_| place };
    let used = Used::beside(place, name);
    match used.compile(source, Frontend::File).and_then(|checked| proved(checked, source)) {
        Ok((checked, _)) if typed(&checked) => rust::stubs(&syntax::parse(source).0, &|_| place),
        Ok((checked, warnings)) => {
            let used = used.rebuild();
            let items = rust::expand(&checked, &origin);
            let warnings = warnings.iter().map(|w| warning(place, w.code, &w.report(source)));
            quote!(#used #items #(#warnings)*)
        }
        Err(errors) => {
            let used = used.rebuild();
            let stubs = rust::stubs(&syntax::parse(source).0, &|_| place);
            let render = |error: &Diagnostic| spanned((place, place), &error.report(source));
            let errors = errors.iter().map(render);
            quote!(#used #stubs #(#errors)*)
        }
    }
}

/// The files that a source uses, found beside the file that the macro stands in.
struct Used {
    place: Span,
    files: UsedFiles,
    /// The files that were read.
    read: RefCell<Vec<String>>,
}

impl Used {
    /// Returns the files beside the file that `place` stands in, for a source of that name.
    fn beside(place: Span, name: &str) -> Self {
        Self { place, files: UsedFiles::for_source(&find(place, name)), read: RefCell::default() }
    }

    fn compile(
        &self,
        source: &Source,
        frontend: Frontend,
    ) -> Result<CompiledSource, Vec<Diagnostic>> {
        compile_with(source, frontend, &Dependencies { prelude: SOURCES, load: self })
    }

    /// Makes the expansion depend on the files, so that it is made anew when one of them changes.
    fn rebuild(&self) -> TokenStream2 {
        let files = self.read.borrow();
        quote!(#(const _: &[u8] = ::core::include_bytes!(#files);)*)
    }
}

impl SourceFiles for Used {
    fn identity(&self, path: &str) -> Result<String, String> {
        let file = find(self.place, path);
        self.files.identity(&file).map_err(|why| format!("{}: {why}", file.display()))
    }

    fn read(&self, path: &str) -> Result<Source, String> {
        let file = find(self.place, path);
        let bytes = self.files.read(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        self.read.borrow_mut().push(path.to_owned());
        Ok(Source::from_bytes(path, &bytes))
    }
}

/// Returns the path of `name` beside the file that `place` stands in. An editor that expands macros by itself may not
/// say which file that is: then below the package's `src`, or in the package.
fn find(place: Span, name: &str) -> PathBuf {
    if let Some(folder) = place.local_file().and_then(|file| Some(file.parent()?.to_owned())) {
        return folder.join(name);
    }
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let below = package.join("src").join(name);
    if below.exists() { below } else { package.join(name) }
}

/// Returns the program, if it has no errors at the rank counts that are proved now, and its warnings; one of
/// them may say which proof was left out.
fn proved(
    checked: CompiledSource,
    source: &Source,
) -> Result<(CompiledSource, Vec<Diagnostic>), Vec<Diagnostic>> {
    // An editor that expands macros at each key shows names and types; the compiler, which it runs too, proves.
    let Outcome { errors, left } =
        if in_editor() { Outcome::default() } else { expansion::prove(&checked, source) };
    let all = checked.warnings.iter().cloned().chain(left);
    let (denied, warnings): (Vec<_>, Vec<_>) = all.partition(|w| w.severity == Severity::Error);
    let errors = [denied, errors].concat();
    // rustc shows no warnings beside errors: it stops before.
    if errors.is_empty() { Ok((checked, warnings)) } else { Err(errors) }
}

/// Whether names and signatures are all that is wanted of the expansion: an editor makes it at each key, and no Rust of
/// the author stands in it.
fn typed(checked: &CompiledSource) -> bool {
    in_editor()
        && checked.algorithms.iter().all(|algorithm| algorithm.declaration.escapes.is_empty())
}

/// Whether an editor's server expands the macro, and not the compiler.
fn in_editor() -> bool {
    static EDITOR: OnceLock<bool> = OnceLock::new();
    *EDITOR.get_or_init(|| std::env::current_exe().is_ok_and(|program| serves_editor(&program)))
}

/// Whether a program is one of those by which editors expand macros. rust-analyzer has one beside the compiler, which no
/// variable of the environment tells apart in all versions, so its name does.
fn serves_editor(program: &Path) -> bool {
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    name.starts_with("rust-analyzer") || name.starts_with("intellij-rust")
}

/// Makes one error under the tokens from `first` to `last`.
fn spanned(range: (Span, Span), message: &str) -> TokenStream2 {
    syn::Error::new_spanned(tokens(range), message).to_compile_error()
}

/// Makes a warning. Stable Rust lets a macro warn only by its expansion: the use of a deprecated item.
fn warning(place: Span, code: Code, message: &str) -> TokenStream2 {
    // The name is part of the text that rustc shows.
    let name = match code.severity() {
        Severity::Warning => code.as_str(),
        Severity::Error => "PROOF_AT_EXPANSION",
    };
    let name = Ident::new(name, place.resolved_at(Span::mixed_site()));
    quote!(const _: () = {
        #[deprecated(note = #message)]
        const #name: () = ();
        #name
    };)
}

fn tokens((first, last): (Span, Span)) -> TokenStream2 {
    [first, last].map(|span| TokenTree::Ident(Ident::new("_", span))).into_iter().collect()
}

/// Returns the spans of a token, or of the last one behind all.
fn at(spans: &[(Span, Span)], index: u32) -> (Span, Span) {
    let none = || (Span::call_site(), Span::call_site());
    spans.get(index as usize).or(spans.last()).copied().unwrap_or_else(none)
}

#[cfg(test)]
mod tests;
