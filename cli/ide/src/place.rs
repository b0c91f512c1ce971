//! The token at a place.

use roundelay_core::syntax::Source;
use roundelay_core::syntax::token::Tok;

/// A line and a column, both from 1, and columns in characters.
pub type Place = (u32, u32);

/// Returns the token at a place, or the one that ends there.
pub(super) fn token(source: &Source, at: Place) -> Option<usize> {
    let places = source.places();
    let after = places.partition_point(|place| (place.line, place.column) <= at);
    let (nth, place) = (after.checked_sub(1)?, places[after - 1]);
    let within = at < (place.end_line, place.end_column);
    let touched = at == (place.end_line, place.end_column);
    // Of two tokens that meet there, a word is meant: `left.` is about `left`.
    match nth.checked_sub(1).map(|before| (before, places[before])) {
        Some((before, place))
            if within
                && (place.end_line, place.end_column) == at
                && word(source, nth).is_none()
                && word(source, before).is_some() =>
        {
            Some(before)
        }
        _ => (within || touched).then_some(nth),
    }
}

/// Returns the last token that begins before a place.
pub(super) fn before(source: &Source, at: Place) -> Option<usize> {
    source.places().partition_point(|place| (place.line, place.column) < at).checked_sub(1)
}

/// Returns the word that a token is, if it is one.
pub(super) fn word(source: &Source, token: usize) -> Option<&str> {
    match source.tokens().get(token)? {
        Tok::Ident(word) => Some(word),
        _ => None,
    }
}
