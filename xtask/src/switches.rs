//! The options of a job. Its usage is their table: an option begins a line, and has a value where a word in capitals
//! follows.

use std::path::PathBuf;

/// The options that were given.
pub(crate) struct JobOptions {
    usage: &'static str,
    given: Vec<(String, String)>,
}

impl JobOptions {
    pub(crate) fn read(usage: &'static str, args: &[&str]) -> Result<Self, String> {
        let mut given = Vec::new();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let value = match has_value(usage, arg) {
                None => None,
                Some(false) => Some(&""),
                Some(true) => args.next(),
            };
            let value = value.ok_or_else(|| format!("{arg}\n{usage}"))?;
            given.push(((*arg).to_owned(), (*value).to_owned()));
        }
        Ok(Self { usage, given })
    }

    /// Returns the value of an option; that of a flag is empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let given = self.given.iter().rev().find(|(given, _)| given == name);
        given.map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// Returns the value of an option as `read` reads it, and an error with the usage where it cannot.
    pub(crate) fn value<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        read(text).map(Some).ok_or_else(|| format!("{name} {text}\n{}", self.usage))
    }
}

/// Whether an option of a usage has a value; `None` where there is no such option.
fn has_value(usage: &str, name: &str) -> Option<bool> {
    let words = usage.lines().map(|line| line.split_whitespace());
    let mut words =
        words.filter(|_| name.starts_with("--")).find(|w| w.clone().next() == Some(name))?;
    Some(words.nth(1).is_some_and(|word| word.chars().all(|c| c.is_ascii_uppercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: &str = "usage: job\n  --quick     at once\n  --device N  the GPU to use";

    #[test]
    fn options_are_those_of_the_usage() {
        let read = |args: &[&str]| JobOptions::read(USAGE, args);
        let number = |text: &str| text.parse::<u32>().ok();
        let options = read(&["--device", "7", "--quick", "--device", "2"]).expect("options");
        assert_eq!(options.value("--device", number), Ok(Some(2)));
        assert!(options.has("--quick") && options.path("--device") == Some("2".into()));
        let none = read(&[]).expect("no option is needed");
        assert!(!none.has("--quick") && none.value("--device", number) == Ok(None));
        for wrong in [&["--fast"][..], &["--device"], &["usage:"], &["job"], &["at"]] {
            assert!(read(wrong).is_err_and(|why| why.ends_with(USAGE)), "{wrong:?}");
        }
        let wrong = read(&["--device", "first"]).expect("its value is read later");
        assert!(wrong.value("--device", number).is_err_and(|why| why.ends_with(USAGE)));
    }
}
