//! The values that pass between a layout walk and a `rust { }` escape, which only the compiled crate can run.

use std::rc::Rc;

use super::arith::Fault;
use crate::ids::RankId;

/// The escapes of an algorithm: the Rust code of its author, as functions.
#[derive(Clone, Copy, Debug)]
pub struct Escapes {
    /// The name of the algorithm of the escapes.
    pub algorithm: &'static str,
    /// Returns the value of the escape with that number, for these values of the names in its text.
    pub value: fn(u32, &Scope<'_>) -> Int,
}

/// The values of the names in the text of an escape, in the order of their first uses.
#[derive(Debug)]
pub struct Scope<'a>(pub(crate) &'a [Seen]);

/// The value of one name.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A number, a truth value or a peer.
    Number(i64),
    List(Rc<[i64]>),
}

/// A number of the program, and the value of an escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int(pub(crate) Result<i64, Fault>);

/// A truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(bool);

/// A rank that this rank communicates with, or this rank itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(RankId);

/// A list of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List(Rc<[i64]>);

impl Scope<'_> {
    /// Returns the number at `index`.
    pub fn int(&self, index: usize) -> Int {
        Int(Ok(self.number(index)))
    }

    /// Returns the truth value at `index`.
    pub fn flag(&self, index: usize) -> Flag {
        Flag(self.number(index) != 0)
    }

    /// Returns the peer at `index`.
    pub fn peer(&self, index: usize) -> Peer {
        Peer(RankId(self.number(index) as u32))
    }

    /// Returns the list at `index`.
    pub fn list(&self, index: usize) -> List {
        match &self.0[index] {
            Seen::List(list) => List(list.clone()),
            Seen::Number(_) => unreachable!("the checker accepts only a list"),
        }
    }

    fn number(&self, index: usize) -> i64 {
        match &self.0[index] {
            Seen::Number(number) => *number,
            Seen::List(_) => unreachable!("the checker accepts only a number"),
        }
    }
}

impl Int {
    /// Returns the plain number.
    pub fn get(self) -> i64 {
        self.0.unwrap_or(0)
    }
}

impl Flag {
    /// Returns the plain truth value.
    pub fn get(self) -> bool {
        self.0
    }
}

impl List {
    /// Returns the plain numbers.
    pub fn get(&self) -> &[i64] {
        &self.0
    }
}

impl From<i64> for Int {
    fn from(value: i64) -> Self {
        Self(Ok(value))
    }
}

impl From<u32> for Int {
    fn from(value: u32) -> Self {
        Self(Ok(i64::from(value)))
    }
}

impl From<i32> for Int {
    fn from(value: i32) -> Self {
        Self(Ok(i64::from(value)))
    }
}

impl From<usize> for Int {
    fn from(value: usize) -> Self {
        let takes = "what fits 64 signed bits";
        Self(i64::try_from(value).map_err(|_| Fault::Argument {
            function: "int",
            takes,
            got: i64::MAX,
        }))
    }
}
