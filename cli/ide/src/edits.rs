//! Edits of a text: another name, the canonical form, and the corrections of errors.

use roundelay_core::check::dependencies::SourceFiles;
use roundelay_core::diagnostics::{Diagnostic, Edit};
use roundelay_core::source::Span;
use roundelay_core::syntax::{self, Source};

use super::names::declaration;
use super::place::{Place, token, word};
use super::text::EditorText;

impl EditorText {
    /// Returns the name at a place, if it can get another name.
    pub fn renamed_at(&self, at: Place) -> Option<Span> {
        let token = token(&self.source, at)?;
        declaration(self.named(token)?)?;
        Some(Span::new(token, token + 1))
    }

    /// Returns the places of a name, which is to be `new` at all of them. The text with the new name has the errors that
    /// it had before: a name that is taken, or that would stand for something else somewhere, is refused.
    pub fn rename(
        &self,
        at: Place,
        new: &str,
        files: &dyn SourceFiles,
    ) -> Result<Option<Vec<Span>>, String> {
        let asked = Source::from_text("", new);
        if asked.tokens().len() != 1 || word(&asked, 0).is_none() || !asked.diagnostics().is_empty()
        {
            return Err(format!("`{new}` is not a name"));
        }
        let Some(named) = self.named_at(at) else { return Ok(None) };
        let mut places = self.places(named);
        if places.is_empty() {
            return Err("this name is not declared in this text".to_owned());
        }
        places.sort_by_key(|span| span.lo);
        let text = self.source.text().unwrap_or_default();
        let (mut changed, mut end) = (String::new(), 0);
        for span in &places {
            let range = self.source.range(*span);
            changed.push_str(&text[end..range.start]);
            changed.push_str(new);
            end = range.end;
        }
        changed.push_str(&text[end..]);
        let source = Source::from_text(self.source.name(), &changed);
        let after = Self::of_source(source, self.is_rust, files);
        let same = after.errors.len() == self.errors.len() && {
            let token = places[0].lo as usize;
            after.named(token).map(|named| after.places(named).len()) == Some(places.len())
        };
        if !same {
            let why = after.errors.first().map_or("it has another meaning there", |e| &e.title);
            return Err(format!("`{new}` cannot be the name: {why}"));
        }
        Ok(Some(places))
    }

    /// Returns the text in canonical form; `None` where it has an error of syntax.
    pub fn format(&self) -> Option<String> {
        let (file, errors) = syntax::parse(&self.source);
        (!self.is_rust && errors.is_empty())
            .then(|| syntax::printer::print_with_trivia(&file, &self.source))
    }

    /// Returns the corrections of the errors and warnings that `touch` what is asked about: those that their `help` says,
    /// as titles and edits.
    pub fn fixes(&self, touch: impl Fn(Span) -> bool) -> impl Iterator<Item = (String, &[Edit])> {
        let found = self.problems().filter(move |found| touch(found.primary));
        found.filter_map(|Diagnostic { edits, help, .. }| {
            let title = match &edits[..] {
                [] => return None,
                [Edit { text, .. }] if text.is_empty() => "leave it out".to_owned(),
                [Edit { text, at }] if at.lo < at.hi && !text.contains('\n') => {
                    format!("write `{text}`")
                }
                _ => help.clone()?,
            };
            Some((title, &edits[..]))
        })
    }
}
