//! Diagnostics as rustc shows them, for the command line. Apart, behind the feature `render`,
//! because the macro's diagnostics are rendered by rustc itself.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostics::Diagnostic;
use crate::source::Source;

/// Renders `diagnostic` like rustc; with terminal colours if `coloured`.
pub fn render(diagnostic: &Diagnostic, source: &Source, coloured: bool) -> String {
    let title = Level::ERROR.primary_title(diagnostic.title.as_str()).id(diagnostic.code.as_str());
    let group = if let Some(text) = source.text() {
        title.element(snippet(diagnostic, source, text))
    } else {
        let at = source.location(diagnostic.primary);
        let origin = Origin::path(source.name());
        title.element(origin.line(at.line as usize).char_column(at.column as usize))
    };
    let group = footers(group, diagnostic);
    let renderer = if coloured { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

fn snippet<'a>(
    diagnostic: &'a Diagnostic,
    source: &'a Source,
    text: &'a str,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let label = |text: &'a str| (!text.is_empty()).then_some(text);
    let primary = AnnotationKind::Primary
        .span(source.range(diagnostic.primary))
        .label(label(&diagnostic.label));
    let others = diagnostic
        .others
        .iter()
        .map(|(span, text)| AnnotationKind::Context.span(source.range(*span)).label(label(text)));
    Snippet::source(text).path(source.name()).annotation(primary).annotations(others)
}

fn footers<'a>(mut group: Group<'a>, diagnostic: &'a Diagnostic) -> Group<'a> {
    for note in diagnostic.all_notes() {
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}
