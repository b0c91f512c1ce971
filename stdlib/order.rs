//! Promises about the order of reductions, which a communicator keeps in all its calls.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::SpanId;
use roundelay_core::schedule::demands::Demands;
use roundelay_core::verify::{Proved, ReductionOrder};

pub use roundelay_core::values::order_class::OrderClass;

use crate::library::{
    OrderedAllReduce, OrderedOneShotAllReduce, OrderedReduce, OrderedReduceScatter,
};
use crate::{Algorithm, Collective, Error};

/// The environment variable with the promises that all communicators of a process keep.
pub(crate) const VARIABLE: &str = "ROUNDELAY_ORDER";

/// The number of ranks from which one shot takes longer to prove than two.
const ONE_SHOT: u32 = 64;

/// Promises about the order of reductions. A communicator that is told to keep them runs only algorithms whose
/// certificate has them, and does not change the order between calls: see [`Comm::in_order`](crate::Comm::in_order).
///
/// The text form is a list such as `all_counts,rank_order,roundings=1`.
///
/// ```
/// use roundelay::{OrderClass, Promises};
///
/// let promises: Promises = "all_counts,roundings=1".parse().expect("two promises");
/// assert_eq!(promises, Promises::new().keeping(OrderClass::AllCounts).roundings(1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Whether each of [`OrderClass::ALL`] is kept.
    classes: [bool; OrderClass::ALL.len()],
    roundings: Option<u32>,
}

impl Promises {
    /// Makes no promise.
    pub const fn new() -> Self {
        Self { classes: [false; OrderClass::ALL.len()], roundings: None }
    }

    /// All promises about the order, and one rounding: a result depends on the contributions alone, not on the rank,
    /// on the place of an element, or on the number of elements.
    pub const fn all() -> Self {
        Self { classes: [true; OrderClass::ALL.len()], roundings: Some(1) }
    }

    /// Adds a promise about the order.
    #[must_use]
    pub fn keeping(mut self, class: OrderClass) -> Self {
        self.classes[class as usize] = true;
        self
    }

    /// Adds the promise that no result in a type narrower than f32 is rounded more than `at_most` times.
    #[must_use]
    pub const fn roundings(mut self, at_most: u32) -> Self {
        self.roundings = Some(at_most);
        self
    }

    /// Returns the promises that the environment variable `ROUNDELAY_ORDER` names, read once by a process; none where it
    /// is not set, or empty.
    ///
    /// # Errors
    /// E0406 for a text that is no list of promises.
    pub fn of_process() -> Result<Self, Error> {
        static READ: OnceLock<Result<Promises, String>> = OnceLock::new();
        let read = READ.get_or_init(|| {
            let text = std::env::var_os(VARIABLE).unwrap_or_default();
            let read = text.to_string_lossy().parse();
            read.map_err(|why: NotPromises| format!("{VARIABLE}: {why}"))
        });
        read.clone().map_err(Error::Environment)
    }

    /// Returns the most roundings that are promised.
    pub const fn most_roundings(&self) -> Option<u32> {
        self.roundings
    }

    /// Whether there is any promise.
    pub fn any(&self) -> bool {
        *self != Self::new()
    }

    /// Whether one promise about the order is made.
    pub fn has(&self, class: OrderClass) -> bool {
        self.classes[class as usize]
    }

    /// Returns the library's algorithm that keeps all promises; `None` for collectives that do not reduce. All of these
    /// algorithms give equal bits.
    pub(crate) fn algorithm(
        collective: Collective,
        root: u32,
        nranks: u32,
    ) -> Option<Box<dyn Algorithm>> {
        Some(match collective {
            Collective::AllReduce if nranks <= ONE_SHOT => Box::new(OrderedOneShotAllReduce::new()),
            Collective::AllReduce => Box::new(OrderedAllReduce::new()),
            Collective::ReduceScatter => Box::new(OrderedReduceScatter::new()),
            Collective::Reduce => Box::new(OrderedReduce::new().root(i64::from(root))),
            _ => return None,
        })
    }

    /// Returns the promises that a proved algorithm keeps; `None` where it does not reduce.
    pub(crate) fn kept_by(proved: &Proved) -> Option<Self> {
        Some(proved.proof().reduction.as_ref()?.in_every_mode().into())
    }

    /// Demands the promises of an algorithm, beside the demands of its author: no optimization breaks them then.
    ///
    /// # Errors
    /// The findings of an algorithm that does not keep them: E0317 or E0320, at the statement that breaks one.
    pub(crate) fn demanded_of(&self, proved: Proved) -> Result<Proved, Vec<Finding>> {
        if !self.any() {
            return Ok(proved);
        }
        let mut schedule = (**proved.schedule()).clone();
        let Demands { order, roundings, .. } = &mut schedule.demands;
        let kept = OrderClass::ALL.into_iter().filter(|class| self.has(*class));
        order.extend(kept.map(|class| (class, SpanId(0))));
        let most = [*roundings, self.roundings.map(|most| (most, SpanId(0)))];
        *roundings = most.into_iter().flatten().min_by_key(|(most, _)| *most);
        Proved::new(schedule)
    }

    /// Returns the finding, E0317, of two algorithms for calls of different sizes that reduce in different orders, where
    /// the order must not depend on the count.
    pub(crate) fn apart(&self, proved: &Proved, other: &Proved) -> Option<Finding> {
        if !self.has(OrderClass::AllCounts) {
            return None;
        }
        proved.proof().orders.differs(&other.proof().orders)?;
        let [one, other] = [proved, other].map(|proved| &proved.schedule().algorithm);
        let title = format!(
            "{one} reduces or rounds in another order than {other}, which runs for another size"
        );
        Some(
            Finding::new(Code::OrderDiffers, SpanId(0), title)
                .note(
                    "`all_counts` is promised: calls of another size must not run in another order",
                )
                .help("use one algorithm for all sizes"),
        )
    }
}

/// The promises that an order keeps.
impl From<ReductionOrder> for Promises {
    fn from(order: ReductionOrder) -> Self {
        Self { classes: OrderClass::ALL.map(|c| order.keeps(c)), roundings: Some(order.roundings) }
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = OrderClass::ALL.into_iter().filter(|class| self.has(*class));
        let roundings = self.roundings.map(|most| format!("roundings={most}"));
        let all: Vec<_> = kept.map(|class| class.to_string()).chain(roundings).collect();
        f.write_str(&all.join(","))
    }
}

/// A text that is no list of promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPromises(String);

impl fmt::Display for NotPromises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = OrderClass::ALL.map(OrderClass::name).join(", ");
        write!(f, "`{}` is no promise; there are {names}, roundings=MOST and all", self.0)
    }
}

impl std::error::Error for NotPromises {}

impl FromStr for Promises {
    type Err = NotPromises;

    fn from_str(text: &str) -> Result<Self, NotPromises> {
        let mut promises = Self::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let most = word.strip_prefix("roundings=").map(|most| most.trim().parse());
            promises = match (word, most, OrderClass::from_name(word)) {
                ("all", ..) => Self::all(),
                (_, Some(Ok(most)), _) => promises.roundings(most),
                (.., Some(class)) => promises.keeping(class),
                _ => return Err(NotPromises(word.to_owned())),
            };
        }
        Ok(promises)
    }
}
