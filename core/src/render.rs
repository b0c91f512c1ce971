//! Diagnostics in the form of rustc, for the command line. This is a module of its own because rustc itself renders the
//! macro's diagnostics.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostics::{Diagnostic, Severity};
use crate::source::Span;
use crate::syntax::Source;

/// Renders `diagnostic` like rustc; with terminal colors if `colored`.
pub fn render(diagnostic: &Diagnostic, source: &Source, colored: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.title.as_str()).id(diagnostic.code.as_str());
    let group = if let Some(snippet) = snippet(diagnostic, source) {
        title.element(snippet)
    } else {
        let at = source.location(diagnostic.primary);
        let origin = Origin::path(source.name());
        title.element(origin.line(at.line as usize).char_column(at.column as usize))
    };
    let group = footers(group, diagnostic);
    let renderer = if colored { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// Returns the annotated lines; `None` for macro input, or for lines that are too long to read.
fn snippet<'a>(
    diagnostic: &'a Diagnostic,
    source: &'a Source,
) -> Option<Snippet<'a, Annotation<'a>>> {
    const MAX_SHOWN: usize = 1 << 14;
    let text = source.text()?;
    let spans = || diagnostic.others.iter().map(|(span, _)| *span).chain([diagnostic.primary]);
    let first = spans().map(|s| source.range(s).start).min()?;
    let last = spans().map(|s| source.range(s).end).max()?;
    let start = text[..first].rfind('\n').map_or(0, |i| i + 1);
    let end = text[last..].find('\n').map_or(text.len(), |i| last + i);
    // Only these lines are handed over: the renderer's time grows with the length of its text.
    let shown = text.get(start..end).filter(|t| t.len() <= MAX_SHOWN)?;
    let line = spans().map(|s| source.location(s).line).min()?;
    let annotate = |kind: AnnotationKind, span: Span, label: &'a str| {
        let range = source.range(span);
        let label = (!label.is_empty()).then_some(label);
        kind.span(range.start - start..range.end - start).label(label)
    };
    let primary = annotate(AnnotationKind::Primary, diagnostic.primary, &diagnostic.label);
    let others = diagnostic.others.iter();
    let others = others.map(|(span, text)| annotate(AnnotationKind::Context, *span, text));
    let snippet = Snippet::source(shown).line_start(line as usize).path(source.name());
    Some(snippet.annotation(primary).annotations(others))
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
