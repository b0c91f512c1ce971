//! A chart in letters, for a terminal: each curve has a letter, which is a capital at its points.

use super::{Chart, Curve, LIMIT, Mark, Point};

/// The columns of a page of text.
const WIDEST: usize = 100;
/// Columns left of the frame: the numbers of the values.
const LEFT: usize = 9;
/// Columns and rows of the frame.
const WIDE: usize = WIDEST - LEFT - 1;
const TALL: usize = 20;

impl Chart {
    /// Draws the chart as lines of text.
    pub fn letters(&self) -> Vec<String> {
        let mut frame = vec![vec![' '; WIDE]; TALL];
        // The first curve is drawn last, above the others.
        for (curve, [between, at]) in self.curves.iter().zip(self.glyphs()).rev() {
            for pair in curve.points.windows(2).filter(|pair| pair[1].joined) {
                let [from, to] = [&pair[0], &pair[1]].map(|point| self.cell(point));
                let steps = to.0 - from.0;
                for step in 0..=steps {
                    let part = step as f64 / steps.max(1) as f64;
                    let row = from.1 as f64 + part * (to.1 as f64 - from.1 as f64);
                    frame[row.round() as usize][from.0 + step] = between;
                }
            }
            for point in curve.points.iter().filter(|point| point.mark != Mark::Hidden) {
                let (column, row) = self.cell(point);
                frame[row][column] = at;
            }
        }
        let mut lines = vec![self.title.clone(), self.caption.clone(), String::new()];
        lines.push(format!("{:>LEFT$}", self.above));
        for (nth, row) in frame.iter().enumerate() {
            let named =
                self.rows.iter().find(|(value, _)| place(1.0 - self.y.share(*value), TALL) == nth);
            let name = named.map_or("", |(_, name)| name);
            let cells: String = row.iter().collect();
            lines.push(format!("{name:>LEFT$}|{cells}").trim_end().to_owned());
        }
        lines.push(format!("{:>LEFT$}+{}", "", "-".repeat(WIDE)));
        let mut names = " ".repeat(LEFT + 1);
        for (value, name) in &self.columns {
            let middle = LEFT + 1 + place(self.x.share(*value), WIDE);
            let start = middle.saturating_sub(name.chars().count() / 2);
            let start = start.min(WIDEST - name.chars().count());
            // A name without room is left out.
            if start > names.trim_end().len() || names.trim().is_empty() {
                names.truncate(start);
                names.push_str(&" ".repeat(start.saturating_sub(names.len())));
                names.push_str(name);
            }
        }
        lines.push(names);
        lines.push(format!("{:>WIDEST$}", self.below));
        let legend = self.curves.iter().zip(self.glyphs());
        lines.extend(legend.map(|(curve, [_, at])| format!("{at:>LEFT$} {}", curve.name)));
        lines
    }

    /// Returns for each curve what stands between its points, and at them.
    fn glyphs(&self) -> Vec<[char; 2]> {
        let mut letters = (b'a'..=b'z').cycle();
        let mut of = |curve: &Curve| {
            if curve.class == LIMIT {
                return ['.', '*'];
            }
            let letter = char::from(letters.next().expect("letters without end"));
            [letter, letter.to_ascii_uppercase()]
        };
        self.curves.iter().map(&mut of).collect()
    }

    /// Returns the column and the row of a point within the frame.
    fn cell(&self, point: &Point) -> (usize, usize) {
        (place(self.x.share(point.x), WIDE), place(1.0 - self.y.share(point.y), TALL))
    }
}

/// Returns the cell, among a number of cells along an axis, of a share of the axis.
fn place(share: f64, cells: usize) -> usize {
    ((share * (cells - 1) as f64).round().max(0.0) as usize).min(cells - 1)
}
