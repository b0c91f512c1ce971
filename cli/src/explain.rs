//! `roundelay explain E0301`: the book's page for an error code.

use roundelay_core::diagnostics::Code;

use crate::flags::ExplainFlags;
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
        return Err(Failure::usage(Code::UnknownCode, format!("`{text}` is not an error code"))
            .with_help("`roundelay explain` lists them all"));
    };
    print(page(code.as_str()).trim_end());
    Ok(true)
}
