//! The knowledge of an editor's server about a text: its outline, the meaning of a name, the words that may stand at a
//! place, its proofs, and the corrections of its errors. It speaks of tokens and of the compiler's places, and knows no
//! protocol: `lsp` translates it, and any other editor may.

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

pub(crate) use completion::{Completion, CompletionSort};
pub(crate) use files::{holds, names, programs};
pub(crate) use names::{Named, declaration};
pub(crate) use outline::{OutlineSort, Part, ProofState, TextHint};
pub(crate) use place::Place;
pub(crate) use proof::{TextProof, prove};
pub(crate) use text::EditorText;
pub(crate) use tokens::TokenSort;
