//! The knowledge of an editor's server about a text: its outline, the meaning of a name, the words that may stand at a
//! place, its proofs, and the corrections of its errors.
//!
//! A text goes in as [`EditorText::new`], which examines its syntax, names and types, and [`prove`] adds its proofs. The
//! answers are methods of the text. They speak of tokens and of the compiler's places, and know no protocol: a server
//! translates them, whatever its protocol is. README.md says which file to read first.

mod completion;
mod edits;
mod files;
mod hover;
mod lengths;
mod names;
mod outline;
mod place;
mod proof;
mod rust;
mod text;
mod tokens;

pub use completion::{Completion, CompletionSort};
pub use files::{holds, names, programs};
pub use names::{Named, declaration};
pub use outline::{OutlineSort, Part, ProofState, TextHint};
pub use place::Place;
pub use proof::{Counts, TextProof, prove};
pub use text::EditorText;
pub use tokens::{CallForm, TokenSort};
