//! Certificates of the compiler in the documents of the command.

use roundelay_core::certificate::{Certificate, Json};
use serde::{Serialize, Serializer};

/// A value as a part of a document.
struct Part<'a>(&'a Json);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Flag(value) => serializer.serialize_bool(*value),
            Json::Whole(value) => serializer.serialize_u64(*value),
            Json::Decimal(value) => serializer.serialize_f64(*value),
            Json::Text(text) => serializer.serialize_str(text),
            Json::List(values) => serializer.collect_seq(values.iter().map(Part)),
            Json::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(name, value)| (name, Part(value))))
            }
        }
    }
}

/// Writes certificates into a document.
pub(crate) fn facts<S: Serializer>(all: &[Certificate], serializer: S) -> Result<S::Ok, S::Error> {
    let all: Vec<Json> = all.iter().map(Certificate::json).collect();
    serializer.collect_seq(all.iter().map(Part))
}
