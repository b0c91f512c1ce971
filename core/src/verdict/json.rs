//! A verdict as JSON.

use super::{Every, Optimum, Verdict, reason};
use crate::json::Json;

impl Verdict {
    /// Returns the verdict as `roundelay check --format json` prints it, without its errors: they have places in a
    /// source, so [`Diagnostic::json`](crate::diagnostics::Diagnostic::json) has them.
    pub fn json(&self) -> Json {
        let refused = self.refused.iter().map(|(nranks, errors)| {
            let why = Json::Text(reason(errors));
            Json::Object(vec![("nranks", (*nranks).into()), ("reason", why)])
        });
        let facts = || self.proved.iter().map(|count| &count.facts);
        let mut fields = vec![
            ("name", (&self.name).into()),
            ("collective", self.collective.name().into()),
            ("ok", self.is_right().into()),
            ("seconds", self.took.as_secs_f64().into()),
            ("ops", self.ops.into()),
            ("nranks", Json::list(self.nranks.iter().copied())),
            ("proved", Json::list(self.counts())),
        ];
        let values = || Json::list(&self.values);
        fields.extend((!self.values.is_empty()).then(|| ("values", values())));
        fields.push(("refused", Json::List(refused.collect())));
        fields.extend(self.stopped.map(|nranks| ("stopped", nranks.into())));
        let certificates = facts().map(|facts| facts.certificate.json());
        fields.push(("certificates", Json::List(certificates.collect())));
        fields.extend(self.every.as_ref().map(|every| ("every_nranks", every.json())));
        let bounds: Vec<Json> =
            facts().filter_map(|facts| facts.optimum.as_ref()).map(Optimum::json).collect();
        fields.extend((!bounds.is_empty()).then_some(("bounds", Json::List(bounds))));
        Json::Object(fields)
    }
}

impl Every {
    /// Returns the proof, or the obstacle, with the names of its fields in a report.
    pub fn json(&self) -> Json {
        let (name, value) = match self {
            Self::Proved(every) if every.powers_of_two => ("from_powers_of_two", every.from.into()),
            Self::Proved(every) => ("from", every.from.into()),
            Self::Outside { line, column, construct, what } => {
                let fields = vec![
                    ("line", (*line).into()),
                    ("column", (*column).into()),
                    ("construct", construct.into()),
                    ("what", what.into()),
                ];
                ("outside", Json::Object(fields))
            }
        };
        Json::Object(vec![(name, value)])
    }
}

impl Optimum {
    /// Returns all fields, in the order of a report.
    pub fn json(&self) -> Json {
        let link = self.busiest_link.as_ref().map_or(Json::Null, Json::from);
        let mut fields = vec![
            ("nranks", self.nranks.into()),
            ("share", self.share.into()),
            ("seconds_per_byte", self.seconds_per_byte.into()),
            ("busiest_link", link),
            ("bound_seconds_per_byte", self.bound_seconds_per_byte.into()),
            ("bound", (&self.bound).into()),
            ("binding", (&self.binding).into()),
        ];
        let all = self.all_links_seconds_per_byte;
        fields.extend(all.map(|all| ("all_links_seconds_per_byte", all.into())));
        fields.extend([("steps", self.steps.into()), ("least_steps", self.least_steps.into())]);
        Json::Object(fields)
    }
}
