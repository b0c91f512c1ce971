//! `roundelay explain E0301`: the book's page for an error code, and `roundelay explain order`, that for a topic.

use clap::Args;
use roundelay_core::diagnostics::Code;

use crate::program::or_nearest;
use crate::report::Failure;
use crate::streams::print;

#[derive(Args)]
pub(crate) struct ExplainFlags {
    /// A code such as E0301 or W0002, or a topic: order or roundings; E306 and 306 are E0306 [default: a list of all]
    pub(crate) code: Option<String>,
}

pub(crate) fn main(flags: &ExplainFlags) -> Result<bool, Failure> {
    let Some(text) = &flags.code else {
        for code in Code::ALL {
            print(&format!("{code}  {}", code.summary()));
        }
        for (topic, page) in roundelay_book::TOPICS {
            print(&format!("{topic}  {}", title(page)));
        }
        return Ok(true);
    };
    if let Some(page) = roundelay_book::topic(&text.to_ascii_lowercase()) {
        print(page.trim_end());
        return Ok(true);
    }
    let Some(code) = named(text) else {
        let codes = Code::ALL.iter().map(|code| code.as_str());
        let known = codes.chain(roundelay_book::TOPICS.iter().map(|(topic, _)| *topic));
        let help = or_nearest(text, known, "`roundelay explain` lists them all");
        let title = format!("no error or warning has the code `{text}`");
        return Err(Failure::usage(Code::UnknownCode, title).with_help(help));
    };
    let page = roundelay_book::error(code.as_str());
    let page = page.expect("every code has a page, as the test below holds");
    print(page.trim_end());
    Ok(true)
}

/// Returns the title of a page.
fn title(page: &str) -> &str {
    page.lines().next().unwrap_or_default().trim_start_matches("# ")
}

/// Returns the code that `text` names, in capital or small letters: without the zeros before its number, if need be,
/// and without its letter where it is an error's.
fn named(text: &str) -> Option<Code> {
    Code::parse(text).or_else(|| {
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let letter = match text.strip_suffix(digits)? {
            "" => "E",
            letter => letter,
        };
        Code::parse(&format!("{letter}{:04}", digits.parse::<u16>().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let known: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let paged: Vec<_> = roundelay_book::ERRORS.iter().map(|(code, _)| *code).collect();
        assert_eq!(paged, known, "pages and codes differ");
        for (code, page) in roundelay_book::ERRORS {
            assert!(page.starts_with(&format!("# {code}: ")), "{code} has another's page");
        }
    }

    #[test]
    fn topics_are_no_codes() {
        assert!(!roundelay_book::TOPICS.is_empty());
        for (topic, page) in roundelay_book::TOPICS {
            assert!(named(topic).is_none(), "{topic} is a code, too");
            let command = format!("roundelay explain {topic}");
            assert!(page.contains(&command), "the page of {topic} does not name `{command}`");
            assert!(!title(page).is_empty() && !page.contains("<!-- "));
        }
    }
}
