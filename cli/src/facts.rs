//! Values of the compiler in the documents of the command.

use roundelay_core::certificate::Json;
use serde::{Serialize, Serializer};

/// A value as a part of a document.
pub(crate) struct Part<'a>(pub(crate) &'a Json);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Null => serializer.serialize_unit(),
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

/// Writes a value into a document.
pub(crate) fn part<S: Serializer>(value: &Json, serializer: S) -> Result<S::Ok, S::Error> {
    Part(value).serialize(serializer)
}
