//! Names in C, and the words of comments.

/// The fields of a call, beside the fields for scratch.
pub(super) const FIELDS: &str =
    "rank count type op comm extent true_lower true_extent dense in out memory sends receives";

/// The keywords of C99, and names that the text and its headers define: a function must not have one of these names.
const TAKEN: &str = "auto break case char const continue default do double else enum extern \
                     float for goto if inline int long register restrict return short signed \
                     sizeof static struct switch typedef union unsigned void volatile while \
                     main spare run scratch span element part slot within start_send \
                     start_receive finish finish_all copy reduce fold free_own own_communicator \
                     begin end allocate exchange abs div exit free abort atoi malloc calloc \
                     realloc rand srand system index labs qsort bsearch getenv memcpy memmove \
                     strlen";

/// Returns a name in C that is not taken.
pub(super) fn free(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    while taken(&name) || TAKEN.split(' ').any(|known| known == name) {
        name.push('_');
    }
    name
}

/// Returns the function's name: the algorithm's in lower case, with an underscore before each word.
pub(super) fn function(algorithm: &str) -> String {
    let mut name = String::new();
    for c in algorithm.chars() {
        let word = c.is_ascii_uppercase() && !name.is_empty() && !name.ends_with('_');
        if word && !name.ends_with(|last: char| last.is_ascii_uppercase()) {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    free(&name, |name| name.starts_with("mpi_"))
}

/// Whether a text calls a function.
pub(super) fn calls(text: &str, function: &str) -> bool {
    let call = format!("{function}(");
    text.match_indices(&call)
        .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// Returns a text that neither ends nor begins a comment.
pub(super) fn harmless(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
}
