//! A certificate in lines and as JSON.

use std::fmt;

use super::order::SameOrder;
use super::{ALWAYS, ByBlock, Certificate, Fifo, Ideal, Port, Symmetry};
use crate::json::Json;
use crate::units::{count, short};
use crate::verify::{Sameness, Signals};

impl ByBlock {
    fn line(&self) -> String {
        match self {
            Self::Every => "for every vector of counts, one for each block".to_owned(),
            Self::Refused { line, why } => format!("for equal counts alone: line {line}, {why}"),
        }
    }

    fn json(&self) -> Json {
        match self {
            Self::Every => "every".into(),
            Self::Refused { line, why } => {
                let refused = vec![("line", (*line).into()), ("why", why.into())];
                Json::Object(vec![("refused", Json::Object(refused))])
            }
        }
    }
}

impl Certificate {
    /// Returns the counts for which it holds, if not all.
    pub fn counts(&self) -> Option<String> {
        let (multiple, n) = (self.multiple?, self.nranks);
        Some(format!(
            "only for counts that are multiples of {multiple}, at {}",
            count(n as usize, "rank")
        ))
    }

    /// Returns the steps and the order of reduction in a few words, such as `14 steps · one order`.
    pub fn brief(&self) -> String {
        let steps = count(self.ideal.steps as usize, "step");
        let order = self.order.as_ref().map(|order| match order.weakest.order.ranks {
            Sameness::Exact => " · one order",
            Sameness::Commuted => " · one order up to swapped operands",
            Sameness::Differs => " · orders differ",
        });
        steps + order.unwrap_or_default()
    }

    /// Returns the lines that `roundelay check` prints, with the distance from the best or without it.
    pub fn lines(&self, with_ideal: bool) -> Vec<String> {
        let n = self.nranks;
        let scratch = match self.scratch_units {
            0.0 => "no scratch".to_owned(),
            some => {
                let wide = self.wide_scratch_units.map(|wide| format!(" ({} as f32)", short(wide)));
                let wide = wide.unwrap_or_default();
                format!("{} of scratch{wide}", units(some))
            }
        };
        let signals =
            (self.signals != Signals::default()).then(|| format!("signals: {}", self.signals));
        // Two lines, so that neither is wider than a page of the book.
        let conditions = &self.proved[ALWAYS.len()..];
        let conditions: Vec<_> =
            conditions.iter().map(|c| (*c).to_owned()).chain(signals).collect();
        let Self { messages, pieces, sends_to, receives_from, .. } = self;
        let mut lines = vec![ALWAYS.join(", ")];
        lines.extend(self.symmetry.as_ref().map(|symmetry| symmetry.line.clone()));
        lines.extend(self.asymmetric.as_ref().map(|why| format!("no rank stands for all: {why}")));
        if !conditions.is_empty() {
            lines.push(conditions.join("; "));
        }
        lines.push(format!(
            "at {}: {}, {} a link, {scratch}",
            count(n as usize, "rank"),
            count(self.streams as usize, "stream"),
            if self.notifies == 1 {
                "1 notify".into()
            } else {
                format!("{} notifies", self.notifies)
            },
        ));
        if sends_to.peers + receives_from.peers > 0 {
            lines.push(format!(
                "{} of {}; in one step a rank sends to at most {} and receives from {}",
                count(*messages as usize, "message"),
                count(*pieces as usize, "piece"),
                count(sends_to.peers, "peer"),
                receives_from.peers
            ));
        }
        if let Some(Fifo { credits, needed }) = self.fifo {
            lines.push(format!(
                "fifo: up to {} a link in use, {needed} needed",
                count(credits as usize, "credit")
            ));
        }
        lines.extend(self.counts_by_block.as_ref().map(ByBlock::line));
        lines.extend(self.order.iter().flat_map(SameOrder::lines));
        if with_ideal && n > 1 {
            let Ideal { units: most, least_units, steps, least_steps, .. } = self.ideal;
            lines.push(format!(
                "busiest port: {}, at least {} ({:.1} %); {}, at least {least_steps}",
                units(most),
                short(least_units),
                100.0 * least_units / most.max(f64::MIN_POSITIVE),
                count(steps as usize, "step"),
            ));
        }
        lines
    }
}

/// Returns an amount: `1 unit`, also where a sum of parts is 1 but for its rounding.
fn units(amount: f64) -> String {
    let amount = short(amount);
    if amount == "1" { "1 unit".to_owned() } else { format!("{amount} units") }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines(true).join("\n"))
    }
}

impl Certificate {
    /// Returns all facts for programs, with the names and in the order in which `roundelay check --format json` prints
    /// them.
    pub fn json(&self) -> Json {
        let mut fields: Vec<(&'static str, Json)> = vec![
            ("nranks", self.nranks.into()),
            ("ops", self.ops.into()),
            ("proved", Json::list(self.proved.iter().copied())),
            ("in_place", self.in_place.into()),
        ];
        fields.extend(self.multiple.map(|multiple| ("multiple", multiple.into())));
        fields.extend([
            ("any_mode", self.any_mode.into()),
            ("signals", (&self.signals.to_string()).into()),
            ("streams", self.streams.into()),
            ("notifies", self.notifies.into()),
            ("joins", self.joins.into()),
            ("scratch_units", self.scratch_units.into()),
        ]);
        fields.extend(self.wide_scratch_units.map(|units| ("wide_scratch_units", units.into())));
        fields.extend(self.fifo.as_ref().map(|fifo| ("fifo", fifo.json())));
        fields.extend([
            ("messages", self.messages.into()),
            ("pieces", self.pieces.into()),
            ("sends_to", self.sends_to.json()),
            ("receives_from", self.receives_from.json()),
            ("reduce_depth", self.reduce_depth.into()),
        ]);
        fields.extend(self.order.as_ref().map(|order| ("order", order.json())));
        fields.extend(self.counts_by_block.as_ref().map(|of| ("counts_by_block", of.json())));
        fields.push(("ideal", self.ideal.json()));
        fields.extend(self.symmetry.as_ref().map(|symmetry| ("symmetry", symmetry.json())));
        fields.extend(self.asymmetric.as_ref().map(|why| ("asymmetric", why.into())));
        Json::Object(fields)
    }
}

impl Fifo {
    fn json(&self) -> Json {
        Json::Object(vec![("credits", self.credits.into()), ("needed", self.needed.into())])
    }
}

impl Port {
    fn json(&self) -> Json {
        let peers = (self.peers as u64).into();
        Json::Object(vec![("peers", peers), ("rank", self.rank.into()), ("step", self.step.into())])
    }
}

impl Symmetry {
    fn json(&self) -> Json {
        Json::Object(vec![("turns", (&self.turns).into()), ("way", self.way.into())])
    }
}

impl Ideal {
    fn json(&self) -> Json {
        Json::Object(vec![
            ("units", self.units.into()),
            ("least_units", self.least_units.into()),
            ("steps", self.steps.into()),
            ("least_steps", self.least_steps.into()),
            ("ports", (self.ports as u64).into()),
        ])
    }
}
