//! Traces of runs in Chrome's Trace Event Format, which Perfetto (<https://ui.perfetto.dev>) and `chrome://tracing`
//! open. A process of the format is a rank, a thread is a stream of it, and an event is a line of the file.

mod op_text;
mod text;

pub use op_text::{Data, OpText};
pub use text::{HEAD, Slice, TAIL, TraceText, Track, TrackKind};
