//! Tables in Markdown, which people read as well, and those of pages of the book.

use crate::command::{read, root, write};

/// Rows of text.
pub(crate) struct MarkdownTable {
    rows: Vec<Vec<String>>,
}

impl MarkdownTable {
    pub(crate) fn new(heads: &[&str]) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { rows: vec![heads] }
    }

    pub(crate) fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Returns the whole table, with columns as wide as their contents.
    pub(crate) fn text(&self) -> String {
        let width = |at: usize| self.rows.iter().map(|row| row[at].len()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let mut lines: Vec<String> = self.rows.iter().map(|row| line(row, &widths)).collect();
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        lines.insert(1, format!("|{}|", rules.join("|")));
        lines.join("\n") + "\n"
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let width = |at: usize| widths.get(at).copied().unwrap_or_default();
    let texts = row.iter().enumerate().map(|(at, text)| format!(" {text:w$} |", w = width(at)));
    texts.fold("|".to_owned(), |line, text| line + &text)
}

/// Writes a table in its place in a page, which begins with the line `head`; the lines before and behind it stay.
pub(crate) fn into_page(page: &str, head: &str, table: &str) -> Result<(), String> {
    let path = root().join(page);
    let text = read(&path)?;
    let (before, known) = text.split_once(head).unwrap_or((&text, ""));
    let behind = known.find("\n\n").map_or("", |end| &known[end + 1..]);
    write(&path, &format!("{before}{head}\n{table}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_they_hold() {
        let mut table = MarkdownTable::new(&["MPI", "ranks"]);
        table.add(vec!["openmpi".to_owned(), "2".to_owned()]);
        let expected = "\
| MPI     | ranks |
|---------|-------|
| openmpi | 2     |
";
        assert_eq!(table.text(), expected);
    }
}
