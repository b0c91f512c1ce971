//! The table of a choice.

use std::fmt;

use super::{Choice, Counts, Numbers, Origin, Refused};
use roundelay_core::units::{number, rate, size, time};

impl Choice {
    /// Writes the refused algorithms with their reasons; advice that several have in common is written once.
    fn refusals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut advised: Vec<&Option<String>> = Vec::new();
        for Refused { help, .. } in &self.refused {
            if !advised.contains(&help) {
                advised.push(help);
            }
        }
        // Algorithms with the same advice stand together.
        for advised in advised {
            let alike = self.refused.iter().filter(|refused| refused.help == *advised);
            for Refused { algorithm, code, reason, .. } in alike {
                let reason = reason.strip_prefix(algorithm.as_str()).unwrap_or(reason).trim_start();
                wrapped(f, "", &format!("{algorithm} [{code}]: {reason}"))?;
            }
            advice(f, advised.as_ref())?;
        }
        Ok(())
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, nranks, costs, .. } = self;
        let on = self.topology.as_ref().map_or_else(String::new, |t| format!(" of {t}"));
        writeln!(f, "{collective} of {} on {nranks} ranks{on}\n", size(self.bytes))?;
        let width = self.ranked.iter().map(|row| row.algorithm.len()).max().unwrap_or(0).max(9);
        if !self.ranked.is_empty() {
            writeln!(
                f,
                "{:width$}  {:>9} {:>6} {:>8} {:>6} {:>7} {:>7} {:>7}  by",
                "algorithm",
                "predicted",
                "steps",
                "messages",
                "pieces",
                "volume",
                "reduced",
                "copied"
            )?;
        }
        for row in &self.ranked {
            let Counts { steps, messages, pieces, volume, reduced, copied } = row.counts;
            let [messages, pieces, volume, reduced, copied] =
                [messages, pieces, volume, reduced, copied].map(|work| number(work.busiest));
            let by = match row.numbers {
                Numbers::Simulated => "simulation",
                Numbers::Cores => "cores",
                Numbers::Form(_) => "form",
            };
            let by = if row.own { format!("{by}, yours") } else { by.to_owned() };
            writeln!(
                f,
                "{:width$}  {:>9} {steps:>6} {messages:>8} {pieces:>6} {volume:>7} {reduced:>7} {copied:>7}  {by}",
                row.algorithm,
                time(row.time.seconds()),
            )?;
        }
        if !self.refused.is_empty() {
            writeln!(f, "\nrefused")?;
        }
        self.refusals(f)?;
        let latency =
            if self.latency_of_links { "of the links".to_owned() } else { time(costs.latency) };
        let of = |cost: f64| if cost.is_finite() { rate(cost) } else { "0 ns".to_owned() };
        write!(
            f,
            "\npredicted: simulated, streams by data, signals free; messages to copied: of the busiest rank\n\
             size S {}, latency L {latency}, bandwidth B {}\n\
             a further piece of a message {}, reduce {}, copy {}\n",
            size(self.bytes),
            rate(self.bandwidth),
            time(costs.message),
            of(costs.reduce),
            of(costs.copy),
        )?;
        let own =
            if costs.origin == Origin::Assumed { "; `--costs FILE` takes your own" } else { "" };
        let mut lines = String::new();
        wrapped(&mut lines, "", &format!("constants: {}{own}", costs.source()))?;
        f.write_str(lines.trim_end())?;
        if let Some(cores) = costs.cores {
            write!(
                f,
                "\n{cores} cores do the work of all ranks: by cores = steps * L + all work / cores"
            )?;
        }
        write!(f, "\nequal times are in the order of names")
    }
}

fn advice(f: &mut fmt::Formatter<'_>, help: Option<&String>) -> fmt::Result {
    help.map_or(Ok(()), |help| wrapped(f, "  = help: ", help))
}

/// Writes lines of at most 100 columns, all but the first indented.
fn wrapped(f: &mut impl fmt::Write, head: &str, text: &str) -> fmt::Result {
    let mut line = head.to_owned();
    let mut gap = "";
    for word in text.split_whitespace() {
        if !gap.is_empty() && line.chars().count() + 1 + word.chars().count() > 100 {
            writeln!(f, "{line}")?;
            line.clear();
            gap = "    ";
        }
        line.push_str(gap);
        line.push_str(word);
        gap = " ";
    }
    writeln!(f, "{line}")
}
