//! Values of attributes as the runtime's parser takes them, and errors for values that it refuses.

use std::ops::RangeInclusive;

use super::report::{Remark, TextReport, beyond, shown};
use super::runtime::Runtime;
use super::xml::{self, Element};

/// The text that is read, and the report that errors go to.
pub(super) struct MscclReader<'t, 'r> {
    pub(super) text: &'t str,
    pub(super) report: &'r mut TextReport,
    /// The runtime that reads the program; `None` to refuse a program only if all runtimes refuse it.
    pub(super) runtime: Option<Runtime>,
}

impl<'t> MscclReader<'t, '_> {
    /// Returns the value of a required attribute.
    pub(super) fn value(&mut self, element: &Element<'t>, name: &str) -> Option<&'t str> {
        let value = element.get(name);
        if value.is_none() {
            let title = format!("a {} without `{name}`", element.name());
            self.report.refuse(element.at.clone(), title);
        }
        value
    }

    /// Returns the number in a required attribute.
    pub(super) fn number(
        &mut self,
        element: &Element<'t>,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.value(element, name)?;
        self.in_range(name, value, range)
    }

    /// Reads a plain decimal number within a range.
    pub(super) fn in_range(
        &mut self,
        name: &str,
        value: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let digits = value.strip_prefix('-').unwrap_or(value);
        // The runtime reads a number that begins with 0 as octal.
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.len() == 1 || !digits.starts_with('0'));
        let number = value.parse::<i64>().ok().filter(|_| plain);
        if let Some(number) = number.filter(|number| range.contains(number)) {
            return Some(number);
        }
        let at = xml::range(self.text, value);
        let text = shown(value);
        let title = match number {
            Some(number) => beyond(name, (number, &text), range.into_inner()),
            None => format!("`{name}` is \"{text}\", which is no decimal number"),
        };
        self.report.refuse(at, title);
        None
    }

    /// Reads a truth value: 0 is false, and any other number true.
    pub(super) fn truth(&mut self, element: &Element<'t>, name: &str) -> Option<bool> {
        Some(self.number(element, name, i64::from(i32::MIN)..=i64::from(i32::MAX))? != 0)
    }

    /// Adds an error if the program is for one of the runtimes that refuse it, or if all runtimes do; otherwise a warning,
    /// with a further note if there is one.
    pub(super) fn refused_by(
        &mut self,
        refuses: impl Fn(Runtime) -> bool,
        about: &str,
        at: std::ops::Range<usize>,
        title: String,
        more: Option<String>,
    ) {
        let these: Vec<_> = Runtime::ALL.into_iter().filter(|runtime| refuses(*runtime)).collect();
        if these.is_empty() {
            return;
        }
        let all = these.len() == Runtime::ALL.len();
        if all || self.runtime.is_some_and(|runtime| these.contains(&runtime)) {
            self.report.refuse(at, title);
        } else if self.runtime.is_none() {
            let names: Vec<_> = these.iter().map(|runtime| runtime.name()).collect();
            let names = names.join(" and ");
            let refuses = if these.len() == 1 { "refuses" } else { "refuse" };
            let warning = self.report.warn(about, at, title);
            let warning = warning.note(format!("{names} {refuses} such a program"));
            more.into_iter().fold(warning, Remark::note);
        }
    }
}
