//! Reads values of objects, with errors for values that the executor refuses.

use std::ops::{Range, RangeInclusive};

use super::json::{Data, Value};
use super::report::{TextReport, beyond, did_you_mean, shown};
use roundelay_core::diagnostics::near::nearest;

/// The report that errors go to.
pub(super) struct MscclppReader<'r> {
    pub(super) report: &'r mut TextReport,
    /// Whether the plan shares its scratch with others.
    pub(super) shared: bool,
}

/// An object whose keys are known.
#[derive(Clone, Copy)]
pub(super) struct Fields<'v, 't> {
    pub(super) value: &'v Value<'t>,
    /// The kind of object, for messages.
    what: &'v str,
}

impl<'v, 't> Fields<'v, 't> {
    /// Returns the value of a key, if present.
    pub(super) fn get(self, key: &str) -> Option<&'v Value<'t>> {
        let Data::Map(entries) = &self.value.data else { return None };
        entries.iter().find(|(known, ..)| known == key).map(|(_, _, value)| value)
    }

    pub(super) fn at(self) -> Range<usize> {
        self.value.at.clone()
    }
}

impl MscclppReader<'_> {
    /// Adds an error: `what` should stand in the place of a value.
    pub(super) fn expected(&mut self, what: &str, value: &Value<'_>) {
        let title = format!("{what}, and this is {}", value.data.kind());
        self.report.refuse(head(&value.at), title);
    }

    /// Returns the entries of an object, with any keys.
    pub(super) fn object<'v, 't>(
        &mut self,
        value: &'v Value<'t>,
        what: &'v str,
    ) -> Option<Fields<'v, 't>> {
        if !matches!(value.data, Data::Map(_)) {
            self.expected(&format!("{what} is an object"), value);
            return None;
        }
        Some(Fields { value, what })
    }

    /// Refuses keys of an object that are none of `keys`, and keys that stand twice.
    pub(super) fn only(&mut self, fields: Fields<'_, '_>, keys: &[&'static str]) -> bool {
        let Data::Map(entries) = &fields.value.data else { return false };
        let mut right = true;
        for (place, (key, at, _)) in entries.iter().enumerate() {
            let twice = entries[..place].iter().any(|(earlier, ..)| earlier == key);
            if twice {
                let title = format!("{} has the key `{}` twice", fields.what, shown(key));
                self.report.refuse(at.clone(), title);
            } else if !keys.contains(&&**key) {
                let title = format!("no key of {} is called `{}`", fields.what, shown(key));
                let meant = did_you_mean(nearest(key, keys.iter().copied()));
                self.report.refuse(at.clone(), title).help_if(meant);
            } else {
                continue;
            }
            right = false;
        }
        right
    }

    /// Returns the entries of an object that has no keys but `keys`.
    pub(super) fn fields<'v, 't>(
        &mut self,
        value: &'v Value<'t>,
        what: &'v str,
        keys: &[&'static str],
    ) -> Option<Fields<'v, 't>> {
        let fields = self.object(value, what)?;
        self.only(fields, keys).then_some(fields)
    }

    /// Returns the value of a required key.
    pub(super) fn needed<'v, 't>(
        &mut self,
        fields: Fields<'v, 't>,
        key: &str,
    ) -> Option<&'v Value<'t>> {
        let value = fields.get(key);
        if value.is_none() {
            let title = format!("{} without `{key}`", fields.what);
            self.report.refuse(head(&fields.value.at), title);
        }
        value
    }

    /// Reads an integer within a range.
    pub(super) fn in_range(
        &mut self,
        what: &str,
        value: &Value<'_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let Data::Number(number) = value.data else {
            self.expected(&format!("`{what}` is a number"), value);
            return None;
        };
        let (least, most) = (i128::from(*range.start()), i128::from(*range.end()));
        let title = match number {
            Some(number) if (least..=most).contains(&number) => return u64::try_from(number).ok(),
            Some(number) => beyond(what, (number, &number.to_string()), (least, most)),
            None => format!("`{what}` is a whole number that fits 64 bits"),
        };
        self.report.refuse(value.at.clone(), title);
        None
    }

    pub(super) fn number(
        &mut self,
        fields: Fields<'_, '_>,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = self.needed(fields, key)?;
        self.in_range(key, value, range)
    }

    /// Reads a number; a missing key means the default.
    pub(super) fn number_or(
        &mut self,
        fields: Fields<'_, '_>,
        key: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        match fields.get(key) {
            Some(value) => self.in_range(key, value, range),
            None => Some(default),
        }
    }

    pub(super) fn truth(&mut self, key: &str, value: &Value<'_>) -> Option<bool> {
        if let Data::Truth(truth) = value.data {
            return Some(truth);
        }
        self.expected(&format!("`{key}` is true or false"), value);
        None
    }

    /// Reads a truth value; a missing key means false.
    pub(super) fn truth_or_not(&mut self, fields: Fields<'_, '_>, key: &str) -> Option<bool> {
        fields.get(key).map_or(Some(false), |value| self.truth(key, value))
    }

    pub(super) fn text<'v>(&mut self, key: &str, value: &'v Value<'_>) -> Option<&'v str> {
        if let Data::Text(text) = &value.data {
            return Some(text);
        }
        self.expected(&format!("`{key}` is a text"), value);
        None
    }

    /// Reads one of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &str,
        value: &Value<'_>,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(key, value)?;
        if let Some((_, known)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*known);
        }
        let title = format!("no `{key}` is called `{}`", shown(text));
        let all: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let help = format!("write {}", all.join(" or "));
        self.report.refuse(value.at.clone(), title).help(help);
        None
    }

    pub(super) fn list<'v, 't>(
        &mut self,
        key: &str,
        value: &'v Value<'t>,
    ) -> Option<&'v [Value<'t>]> {
        if let Data::List(items) = &value.data {
            return Some(items);
        }
        self.expected(&format!("`{key}` is a list"), value);
        None
    }

    /// Returns the list of a required key.
    pub(super) fn list_of<'v, 't>(
        &mut self,
        fields: Fields<'v, 't>,
        key: &str,
    ) -> Option<&'v [Value<'t>]> {
        let value = self.needed(fields, key)?;
        self.list(key, value)
    }

    /// Reads a list of numbers within a range.
    pub(super) fn numbers(
        &mut self,
        fields: Fields<'_, '_>,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Option<Vec<u32>> {
        let items = self.list_of(fields, key)?;
        items.iter().map(|item| Some(self.in_range(key, item, range.clone())? as u32)).collect()
    }

    /// Refuses more items than the executor has room for; the executor itself does not check this.
    pub(super) fn at_most(&mut self, of: (usize, usize), what: &str, at: &Range<usize>) -> bool {
        let (count, most) = of;
        if count > most {
            let title = format!("{count} {what}, and the executor has room for {most}");
            let error = self.report.refuse(head(at), title);
            error.note("it fills a table of that length without looking at its end");
        }
        count <= most
    }
}

/// Returns the first character of a place, so that a message does not show a long value.
pub(super) fn head(at: &Range<usize>) -> Range<usize> {
    at.start..at.end.min(at.start + 1)
}
