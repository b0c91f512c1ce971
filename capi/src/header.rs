//! Whether `roundelay.h` and `roundelay_command.h` declare the functions of their libraries: each function with its
//! types, and each code.

use std::collections::BTreeMap;

use quote::ToTokens as _;
use roundelay::{Collective, DType, ReduceOp};

use crate::{codes, worlds};

const HEADER: &str = include_str!("../include/roundelay.h");

/// Returns a header without comments, on one line.
fn header(written: &str) -> String {
    let mut text = String::new();
    let mut rest = written;
    while let Some((code, comment)) = rest.split_once("/*") {
        text.push_str(code);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    text.push_str(rest);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a C type without the names of handles, which are numbers, and without spaces.
fn plain(ty: &str) -> String {
    let ty = ty.replace("roundelay_world_t", "uint64_t").replace("roundelay_request_t", "uint64_t");
    ty.replace(" *", "*").trim().to_owned()
}

/// Returns the declared functions by name: the types of their parameters, and their results.
fn declared(written: &str) -> BTreeMap<String, String> {
    let text = header(written);
    let mut found = BTreeMap::new();
    for statement in text.split(';') {
        let statement = statement.rsplit(['{', '}']).next().unwrap_or_default().trim();
        let Some((head, parameters)) = statement.strip_suffix(')').and_then(|s| s.split_once('('))
        else {
            continue;
        };
        if head.starts_with("typedef") {
            continue;
        }
        let at = head.rfind("roundelay_").expect("a function of ours");
        let (returned, name) = head.split_at(at);
        let parameter = |text: &str| {
            // The name stands last.
            let name =
                text.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
            if text.trim() == "void" { String::new() } else { plain(&text[..name]) }
        };
        let parameters: Vec<String> = parameters.split(',').map(parameter).collect();
        found.insert(name.to_owned(), format!("{} ({})", plain(returned), parameters.join(", ")));
    }
    found
}

/// Returns a type of Rust as C writes it.
fn in_c(ty: &syn::Type) -> String {
    let text = ty.to_token_stream().to_string().replace(' ', "");
    let pointed = |text: &str| -> Option<(String, bool)> {
        let (rest, constant) = match text.strip_prefix("*const") {
            Some(rest) => (rest, true),
            None => (text.strip_prefix("*mut")?, false),
        };
        Some((rest.to_owned(), constant))
    };
    let Some((to, constant)) = pointed(&text) else { return name_in_c(&text) };
    match pointed(&to) {
        Some((to, inner)) => {
            let inner = if inner { "const " } else { "" };
            let outer = if constant { " const*" } else { "*" };
            format!("{inner}{}*{}", name_in_c(&to), outer.trim_start())
        }
        None => format!("{}{}*", if constant { "const " } else { "" }, name_in_c(&to)),
    }
}

fn name_in_c(name: &str) -> String {
    let known = match name {
        "c_int" => "int",
        "c_char" => "char",
        "c_void" => "void",
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "Options" => "roundelay_options_t",
        "Option<Allgather>" => "roundelay_allgather_t",
        other => panic!("no type of C for {other}"),
    };
    known.to_owned()
}

/// Functions by name, as the source of a library has them.
fn defined(source: &str) -> BTreeMap<String, String> {
    let file = syn::parse_file(source).expect("it compiles");
    let functions = file.items.iter().filter_map(|item| match item {
        syn::Item::Fn(function) if function.sig.abi.is_some() => Some(&function.sig),
        _ => None,
    });
    let signature = |signature: &syn::Signature| {
        let parameters: Vec<String> = signature
            .inputs
            .iter()
            .map(|input| match input {
                syn::FnArg::Typed(typed) => in_c(&typed.ty),
                syn::FnArg::Receiver(_) => panic!("no method is called from C"),
            })
            .collect();
        let returned = match &signature.output {
            syn::ReturnType::Default => "void".to_owned(),
            syn::ReturnType::Type(_, ty) => in_c(ty),
        };
        (signature.ident.to_string(), format!("{returned} ({})", parameters.join(", ")))
    };
    functions.map(signature).collect()
}

#[test]
fn the_headers_declare_what_there_is() {
    let mut own = defined(include_str!("lib.rs"));
    own.extend(defined(include_str!("device.rs")));
    assert_eq!(declared(HEADER), own);
    assert!(own.len() > 20, "{}", own.len());
    let command = defined(include_str!("../command/src/lib.rs"));
    assert_eq!(declared(include_str!("../include/roundelay_command.h")), command);
    assert_eq!(command.len(), 3);
}

/// Returns the value of a code in the header.
fn code(name: &str) -> i32 {
    let text = header(HEADER);
    let after = text.split_once(&format!("ROUNDELAY_{name} = ")).map(|(_, after)| after);
    let digits = after.unwrap_or_else(|| panic!("no ROUNDELAY_{name}")).split([',', ' ']).next();
    digits.and_then(|digits| digits.parse().ok()).expect("a number")
}

#[test]
fn codes_are_those_of_the_header() {
    for dtype in DType::ALL {
        let bits = 8 * dtype.size();
        let name = match dtype.name().chars().next() {
            Some('f') if bits == 8 => dtype.name().replace("f8", "FLOAT8_").to_uppercase(),
            Some('i') => format!("INT{bits}"),
            Some('u') => format!("UINT{bits}"),
            Some('b') => format!("BFLOAT{bits}"),
            _ => format!("FLOAT{bits}"),
        };
        assert_eq!(codes::dtype(code(&name)).ok(), Some(*dtype), "{name}");
    }
    for op in ReduceOp::ALL {
        assert_eq!(codes::op(code(&op.name().to_uppercase())).ok(), Some(*op), "{op}");
    }
    for collective in Collective::ALL {
        // `AllReduce` is ALL_REDUCE.
        let mut name = String::new();
        for letter in collective.name().chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        assert_eq!(codes::collective(code(&name)).ok(), Some(collective), "{name}");
    }
    assert!(codes::dtype(-1).is_err() && codes::dtype(12).is_err());
    let flags = [worlds::CHECK_FIRST, worlds::CHECK_NEVER, worlds::USUAL_WAYS, worlds::SITES];
    let named = ["CHECK_FIRST", "CHECK_NEVER", "USUAL_WAYS", "SITES"];
    assert_eq!(flags, named.map(|name| code(name) as u32));
}
