//! Names in CUDA text: those of types, and the author's names, changed where C++ reserves them.

use roundelay_core::check::hir::{ParamTy, Ty};

/// Returns the name of a type in the device library.
pub(super) const fn type_name(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::Peer => "Peer",
        Ty::Ring => "Ring",
        Ty::Rings => "Rings",
        Ty::Tree => "Tree",
        Ty::Trees => "Trees",
        Ty::Groups => "Groups",
        Ty::Topology => "Topology",
        Ty::List => "List",
        Ty::Region => "Region",
        Ty::Pieces => "Pieces",
        Ty::Place => "Place",
        Ty::Places => "Places",
        _ => "i64",
    }
}

/// Returns the type of a parameter's value in the kernel's text.
pub(super) const fn param_type(ty: ParamTy) -> &'static str {
    match ty {
        ParamTy::Int | ParamTy::Rank => "i64",
        ParamTy::Bool => "bool",
        ParamTy::Ring => "Ring",
        ParamTy::Rings => "Rings",
        ParamTy::Tree => "Tree",
        ParamTy::Trees => "Trees",
        ParamTy::Groups => "Groups",
        ParamTy::Topology => "Topology",
        ParamTy::Ranks => "List",
    }
}

/// Words that C++ or the device library reserves, in order.
const TAKEN: &[&str] = &[
    "abs",
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bit_reverse",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "ceil_log2",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "constexpr",
    "continue",
    "copy",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "i64",
    "if",
    "inline",
    "input",
    "int",
    "is_power_of_two",
    "lane",
    "launch",
    "len",
    "list",
    "local",
    "log2",
    "long",
    "max",
    "min",
    "mod",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nranks",
    "nullptr",
    "operator",
    "or",
    "output",
    "popcount",
    "pow2",
    "private",
    "protected",
    "public",
    "quo",
    "rank",
    "reduce",
    "register",
    "requires",
    "return",
    "rev",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "trailing_zeros",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "u32",
    "u64",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
];

/// Returns the author's name, or a similar name if that is reserved.
pub(crate) fn identifier(name: &str) -> String {
    let lists = name.strip_prefix("list_").is_some_and(|rest| rest.parse::<u32>().is_ok());
    if lists || name.ends_with('_') || TAKEN.binary_search(&name).is_ok() {
        return format!("{name}_");
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{TAKEN, identifier};

    #[test]
    fn taken_names_are_found_and_stay_apart() {
        assert!(TAKEN.is_sorted());
        assert_eq!(identifier("double"), "double_");
        assert_eq!(identifier("double_"), "double__");
        assert_eq!(identifier("list_3"), "list_3_");
        assert_eq!(identifier("block"), "block");
    }
}
