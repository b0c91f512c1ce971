//! What a schedule would take on a topology that nobody here owns.

mod timeline;

pub use timeline::{Message, Span, State, Timeline};
