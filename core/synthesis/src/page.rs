//! The writer of pages for found algorithms: texts in which words stand for what depends on the algorithm, and lists of
//! numbers in lines.

use std::fmt::{Display, Write as _};

/// The width of a line, in characters.
const WIDTH: usize = 100;

/// Returns a text in which each of the words stands for its text.
pub fn fill(text: &str, words: &[(&str, String)]) -> String {
    words.iter().fold(text.to_owned(), |text, (word, by)| text.replace(word, by))
}

/// Returns lines of as many items as fit, each with a comma.
pub fn lines<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let (mut text, mut line) = (String::new(), String::from("       "));
    for item in items {
        let item = format!(" {item},");
        if line.len() + item.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("       ");
        }
        line.push_str(&item);
    }
    let _ = writeln!(text, "{line}");
    text
}

/// Returns a list of the language, with a line for as many items as fit.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    let whole = format!("[{}]", items.join(", "));
    if whole.len() + 20 <= WIDTH { whole } else { format!("[\n{}    ]", lines(items)) }
}

/// Returns the place at which each row of these lengths starts among the items of all rows, and the end.
pub fn starts(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0];
    for length in lengths {
        starts.push(starts[starts.len() - 1] + length);
    }
    starts
}
