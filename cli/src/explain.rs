//! `roundelay explain E0301`: the book's page for an error code.

use roundelay_core::diagnostics::Code;

use crate::flags::ExplainFlags;
use crate::program::or_nearest;
use crate::report::{Failure, print};

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

pub(crate) fn main(flags: &ExplainFlags) -> Result<bool, Failure> {
    let Some(text) = &flags.code else {
        for code in Code::ALL {
            print(&format!("{code}  {}", code.summary()));
        }
        return Ok(true);
    };
    let Some(code) = Code::parse(text) else {
        let known = Code::ALL.iter().map(|code| code.as_str());
        // Its number alone, with or without the zeros before it.
        let digits = text.parse::<u16>().map(|number| format!("E{number:04}"));
        let help = match digits {
            Ok(code) if Code::parse(&code).is_some() => format!("did you mean `{code}`?"),
            _ => or_nearest(text, known, "`roundelay explain` lists them all"),
        };
        return Err(Failure::usage(Code::UnknownCode, format!("`{text}` is not an error code"))
            .with_help(help));
    };
    let (_, page) = page(code).expect("every code has a page, as the test below holds");
    print(page.trim_end());
    Ok(true)
}

fn page(code: Code) -> Option<&'static (&'static str, &'static str)> {
    PAGES.iter().find(|(known, _)| *known == code.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let without: Vec<_> = Code::ALL.iter().filter(|code| page(**code).is_none()).collect();
        assert!(without.is_empty(), "codes without a page: {without:?}");
        assert_eq!(PAGES.len(), Code::ALL.len(), "a page explains a code that does not exist");
    }
}
