//! Linear programs whose constraints are found one after the other: the dual simplex method.
//!
//! Numbers are floats, so what comes of a program is checked by whole numbers before it is used.

/// The largest number that is taken for zero, where numbers are around one.
pub(super) const NEARLY: f64 = 1e-9;

/// The most exchanges of variables.
const EXCHANGES: usize = 1 << 14;

/// A program of variables from zero on: the most of their values, as far as constraints allow.
pub(super) struct LinearProgram {
    /// For each variable, then each constraint's slack: its row, or its column where its value is zero.
    place: Vec<RowOrColumn>,
    /// The variables and slacks of rows: each is the last number of its row, less the others times those of the columns.
    rows: Vec<Vec<f64>>,
    of_row: Vec<usize>,
    of_column: Vec<usize>,
    /// The number, at least zero, that one of each column's variable takes from the sum.
    price: Vec<f64>,
    exchanges: usize,
}

#[derive(Clone, Copy)]
enum RowOrColumn {
    Row(usize),
    Column(usize),
}

impl LinearProgram {
    /// A program for the most of variable 0, which is at most `most`, less each other variable times its price.
    pub(super) fn new(most: f64, prices: &[f64]) -> Self {
        let columns = prices.len() + 1;
        let mut program = Self {
            place: (0..columns).map(RowOrColumn::Column).collect(),
            rows: Vec::new(),
            of_row: Vec::new(),
            of_column: (0..columns).collect(),
            price: [&[-1.0], prices].concat(),
            exchanges: 0,
        };
        program.at_most(&[(0, 1.0)], most);
        program.exchange(0, 0);
        program
    }

    /// Adds a constraint: the variables, each times its number, are together at most `most`.
    pub(super) fn at_most(&mut self, of: &[(usize, f64)], most: f64) {
        let columns = self.of_column.len();
        let mut row = vec![0.0; columns + 1];
        row[columns] = most;
        for (variable, times) in of {
            match self.place[*variable] {
                RowOrColumn::Column(at) => row[at] += times,
                RowOrColumn::Row(at) => {
                    for (mine, other) in row.iter_mut().zip(&self.rows[at]) {
                        *mine -= times * other;
                    }
                }
            }
        }
        self.of_row.push(self.place.len());
        self.place.push(RowOrColumn::Row(self.rows.len()));
        self.rows.push(row);
    }

    /// Returns the value of a variable.
    pub(super) fn value(&self, variable: usize) -> f64 {
        match self.place[variable] {
            RowOrColumn::Row(at) => self.rows[at].last().copied().unwrap_or(0.0).max(0.0),
            RowOrColumn::Column(_) => 0.0,
        }
    }

    /// Makes all constraints hold again; returns whether they do.
    pub(super) fn solve(&mut self) -> bool {
        let last = self.of_column.len();
        loop {
            let lowest = (0..self.rows.len())
                .min_by(|a, b| self.rows[*a][last].total_cmp(&self.rows[*b][last]));
            let Some(row) = lowest.filter(|row| self.rows[*row][last] < -NEARLY) else {
                return true;
            };
            let numbers = &self.rows[row];
            let open = (0..last).filter(|at| numbers[*at] < -NEARLY);
            // The column that loses least; of equal ones, that of the largest number.
            let by_loss = |a: &usize, b: &usize| {
                let loss = |at: usize| self.price[at] / -numbers[at];
                loss(*a).total_cmp(&loss(*b)).then(numbers[*a].total_cmp(&numbers[*b]))
            };
            let Some(column) = open.min_by(by_loss) else { return false };
            self.exchanges += 1;
            if self.exchanges > EXCHANGES {
                return false;
            }
            self.exchange(row, column);
        }
    }

    /// Exchanges the variable of a row and that of a column.
    fn exchange(&mut self, row: usize, column: usize) {
        let pivot = self.rows[row][column];
        self.rows[row][column] = 1.0;
        self.rows[row].iter_mut().for_each(|number| *number /= pivot);
        let own = std::mem::take(&mut self.rows[row]);
        let price = self.price[column];
        let prices = (&mut self.price, price);
        let rows = self.rows.iter_mut().filter(|row| !row.is_empty()).map(|row| {
            let times = row[column];
            (row, times)
        });
        for (numbers, times) in rows.chain([prices]) {
            if times != 0.0 {
                numbers[column] = 0.0;
                for (number, own) in numbers.iter_mut().zip(&own) {
                    *number -= times * own;
                }
            }
        }
        self.rows[row] = own;
        std::mem::swap(&mut self.of_row[row], &mut self.of_column[column]);
        self.place[self.of_row[row]] = RowOrColumn::Row(row);
        self.place[self.of_column[column]] = RowOrColumn::Column(column);
    }
}
