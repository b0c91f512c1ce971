//! The author's names in text of C++, changed where C++ or the device library reserves them.

/// Words that C++ or the device library reserves, in order.
const TAKEN: &[&str] = &[
    "INPUT",
    "Lane",
    "OUTPUT",
    "SCRATCH",
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
    "int",
    "is_power_of_two",
    "lane",
    "launch",
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
    "nullptr",
    "num",
    "operator",
    "or",
    "popcount",
    "pow2",
    "private",
    "protected",
    "public",
    "quo",
    "register",
    "requires",
    "return",
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
    let tables = name.strip_prefix("table_").is_some_and(|rest| rest.parse::<u32>().is_ok());
    if tables || name.ends_with('_') || TAKEN.binary_search(&name).is_ok() {
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
        assert_eq!(identifier("table_3"), "table_3_");
        assert_eq!(identifier("block"), "block");
    }
}
