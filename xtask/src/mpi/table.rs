//! A table with notes below it, as Markdown, which people read as well.

use std::fmt::Write as _;

/// Rows of text.
pub(super) struct MarkdownTable {
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl MarkdownTable {
    pub(super) fn new(heads: &[&str]) -> Self {
        Self {
            rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()],
            notes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: &[String]) {
        self.rows.push(row.to_vec());
    }

    /// Adds a note below the table, and prints it at once.
    pub(super) fn note(&mut self, note: &str) {
        println!("{note}");
        self.remark(note);
    }

    /// Adds a note below the table.
    pub(super) fn remark(&mut self, remark: &str) {
        self.notes.push(remark.to_owned());
    }

    /// Returns the row that was added last.
    pub(super) fn last(&self) -> String {
        line(self.rows.last().map_or(&[][..], Vec::as_slice), &[])
    }

    /// Returns the whole table, with columns as wide as their contents.
    pub(super) fn text(&self) -> String {
        let columns = self.rows[0].len();
        let width = |at: usize| self.rows.iter().map(|row| row[at].len()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = line(&self.rows[0], &widths);
        text.push_str("\n|");
        for width in &widths {
            text.push_str(&"-".repeat(width + 2));
            text.push('|');
        }
        for row in &self.rows[1..] {
            text.push('\n');
            text.push_str(&line(row, &widths));
        }
        text.push('\n');
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str("* ");
            text.push_str(note);
            text.push('\n');
        }
        text
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = "|".to_owned();
    for (at, text) in row.iter().enumerate() {
        let width = widths.get(at).copied().unwrap_or_default();
        let _ = write!(line, " {text:width$} |");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_they_hold() {
        let mut table = MarkdownTable::new(&["MPI", "ranks"]);
        table.add(&["openmpi".to_owned(), "2".to_owned()]);
        table.note("one is left out");
        let expected = "\
| MPI     | ranks |
|---------|-------|
| openmpi | 2     |

* one is left out
";
        assert_eq!(table.text(), expected);
        assert_eq!(table.last(), "| openmpi | 2 |");
    }
}
