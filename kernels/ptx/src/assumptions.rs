//! The assumptions on which a kernel relies beyond the memory model of PTX.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

macro_rules! assumptions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $sentence:literal,)*) => {
        /// A property that a kernel may rely on, and that PTX does not promise. An assumption takes behaviours away: a
        /// run with it has no outcome that a run without it lacks.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Assumption {
            $($(#[$doc])* $variant,)*
            /// `weak-as-relaxed(NAME)`: the plain accesses to the windows of this name are relaxed ones of the system's
            /// scope. A window has the name if its own name is it, or begins with it and a character that is neither a
            /// letter nor a digit, such as `mail of rank 1` for `mail`.
            WeakAsRelaxed(String),
        }

        impl Assumption {
            /// All assumptions but [`WeakAsRelaxed`](Self::WeakAsRelaxed), which is one for each window.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The meaning for a run, in a sentence.
            pub fn sentence(&self) -> &'static str {
                match self {
                    $(Self::$variant => $sentence,)*
                    Self::WeakAsRelaxed(_) => {
                        "plain accesses to this buffer are relaxed ones of the system's scope"
                    }
                }
            }
        }

        /// The number of an assumption.
        enum Number {
            $($variant,)*
        }

        impl Assumption {
            /// A bit of its own; none for one of a window.
            pub(crate) fn bit(&self) -> u32 {
                match self {
                    $(Self::$variant => 1 << Number::$variant as u32,)*
                    Self::WeakAsRelaxed(_) => 0,
                }
            }
        }

        impl fmt::Display for Assumption {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($name),)*
                    Self::WeakAsRelaxed(window) => write!(f, "{WEAK}({window})"),
                }
            }
        }

        impl FromStr for Assumption {
            type Err = UnknownAssumption;

            fn from_str(name: &str) -> Result<Self, UnknownAssumption> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    _ => {
                        let inner = name.strip_prefix(WEAK).and_then(|rest| rest.strip_prefix('('));
                        let window = inner.and_then(|rest| rest.strip_suffix(')'));
                        match window.filter(|window| !window.is_empty()) {
                            Some(window) => Ok(Self::WeakAsRelaxed(window.to_owned())),
                            None => Err(UnknownAssumption(name.to_owned())),
                        }
                    }
                }
            }
        }
    };
}

const WEAK: &str = "weak-as-relaxed";

assumptions! {
    /// `vec16`.
    Vec16 = "vec16": "an access of 16 bytes is performed as one, so all its elements have one age",
    /// `vec8`.
    Vec8 = "vec8": "each aligned pair of 4-byte elements of a vector is performed as one, so both have one age",
    /// `line128`.
    Line128 = "line128":
        "8 lanes of a warp whose strong accesses of 16 bytes fill an aligned line of 128 bytes perform it as one",
    /// `polls-acquire`.
    PollsAcquire = "polls-acquire": "a relaxed or volatile load acquires, at its scope",
    /// `flags-release`.
    FlagsRelease = "flags-release": "a relaxed or volatile store releases what its thread knows, at its scope",
    /// `start-releases`.
    StartReleases = "start-releases":
        "the start of a kernel releases what the launches before it did, at the system's scope",
    /// `loads-before-flag`.
    LoadsBeforeFlag = "loads-before-flag":
        "who sees a relaxed or volatile store knows that the loads before it are complete, and no more",
    /// `counted-blocks`.
    CountedBlocks = "counted-blocks":
        "a relaxed atomic releases and acquires, and a relaxed or volatile load of its result acquires",
    /// `multicast-store`.
    MulticastStore = "multicast-store": "a plain store to a multicast address stores to all its windows",
    /// `multicast-sum`.
    MulticastSum = "multicast-sum": "a reduction of a multicast address is in the order of its windows",
    /// `multicast-alias`.
    MulticastAlias = "multicast-alias":
        "accesses by a multicast address and by a window's own one are in order without `fence.proxy.alias`",
    /// `nc-on-peers`.
    NcOnPeers = "nc-on-peers": "`ld.global.nc` reads as a plain load does, and not data that is constant",
    /// `resident`.
    Resident = "resident": "all blocks of a launch run at once, and none waits for the end of another one",
    /// `one-order`.
    OneOrder = "one-order": "the launches of a device run one after another, in the order in which they are given",
    /// `pdl`.
    Pdl = "pdl":
        "a launch that may begin early begins after the end of those before it, as without the attribute",
}

/// A name that no assumption has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAssumption(pub String);

impl fmt::Display for UnknownAssumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an assumption; known are ", self.0)?;
        Assumption::ALL.iter().try_for_each(|known| write!(f, "{known}, "))?;
        write!(f, "{WEAK}(BUFFER)")
    }
}

impl std::error::Error for UnknownAssumption {}

/// A set of assumptions. The default one has those whose absence no kernel of Roundelay is run with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assumptions(BTreeSet<Assumption>);

impl Default for Assumptions {
    fn default() -> Self {
        Assumption::ALL.iter().filter(|assumption| assumption.is_default()).cloned().collect()
    }
}

impl Assumption {
    /// Whether the default set has it: nearly every kernel relies on it without a word.
    pub fn is_default(&self) -> bool {
        matches!(self, Self::Resident)
    }

    /// Whether it is `weak-as-relaxed` for the window of that name.
    pub(crate) fn is_of_window(&self, name: &str) -> bool {
        let Self::WeakAsRelaxed(of) = self else { return false };
        let rest = name.strip_prefix(of.as_str());
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    }
}

impl Assumptions {
    /// No assumption: PTX alone.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether the set has an assumption.
    pub fn has(&self, assumption: &Assumption) -> bool {
        self.0.contains(assumption)
    }

    /// The set with one more.
    #[must_use]
    pub fn include(mut self, assumption: Assumption) -> Self {
        self.0.insert(assumption);
        self
    }

    /// The set with one less.
    #[must_use]
    pub fn without(mut self, assumption: &Assumption) -> Self {
        self.0.remove(assumption);
        self
    }

    /// The bits of its assumptions.
    pub(crate) fn bits(&self) -> u32 {
        self.0.iter().fold(0, |bits, assumption| bits | assumption.bit())
    }

    /// The assumptions of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Assumption> {
        self.0.iter()
    }
}

impl FromIterator<Assumption> for Assumptions {
    fn from_iter<T: IntoIterator<Item = Assumption>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

impl fmt::Display for Assumptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, assumption) in self.0.iter().enumerate() {
            write!(f, "{}{assumption}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assumption_has_one_name() {
        let weak = Assumption::WeakAsRelaxed("mail".to_owned());
        for assumption in Assumption::ALL.iter().chain([&weak]) {
            assert_eq!(assumption.to_string().parse(), Ok(assumption.clone()));
            assert!(!assumption.sentence().is_empty());
        }
        let wrong = "weak-as-relaxed".parse::<Assumption>().unwrap_err();
        assert!(wrong.to_string().contains("vec16, vec8"), "{wrong}");
    }

    #[test]
    fn a_buffer_has_windows_of_its_name_alone() {
        let weak = Assumption::WeakAsRelaxed("mail".to_owned());
        let names =
            [("mail", true), ("mail of rank 1", true), ("mail2", false), ("my mail", false)];
        for (name, is) in names {
            assert_eq!(weak.is_of_window(name), is, "{name}");
        }
    }
}
