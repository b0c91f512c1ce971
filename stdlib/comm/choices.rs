//! The algorithms that a communicator was told to use: for each collective a table by size.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use roundelay_core::counts::Counts;
use roundelay_core::diagnostics::Finding;
use roundelay_core::layout::Configured;
use roundelay_core::values::params::ParamValue;
use roundelay_core::verify::Proved;

use super::call::{Call, Shape};
use super::on_host::of_library;
use super::spread::Spread;
use super::wire::Wire;
use crate::order::{OrderClass, Promises};
use crate::plans::proved;
use crate::selection::Selection;
use crate::{Algorithm, Collective, Error, Schedule};

/// The algorithms that were chosen, by collective and then by the largest size in bytes for which an algorithm is used.
#[derive(Clone, Default)]
pub(crate) struct Chosen {
    tables: BTreeMap<&'static str, BTreeMap<u64, CallAlgorithm>>,
    /// The hosts of the ranks, where there are several.
    spread: Option<Spread>,
    /// The promises about the order of reductions; those of the process where none were made here.
    promises: Option<Promises>,
}

/// The source of the algorithm of a call.
#[derive(Clone)]
enum CallAlgorithm {
    Library,
    Fixed(Arc<dyn Algorithm + Send + Sync>),
    ByRoot(Arc<dyn Fn(u32) -> Box<dyn Algorithm> + Send + Sync>),
}

impl CallAlgorithm {
    /// Makes the choice of an algorithm that was compiled when the program ran, rooted where the call is if it has a
    /// parameter `root`.
    fn of(algorithm: Configured) -> Self {
        if !algorithm.collective().is_rooted() {
            return Self::Fixed(Arc::new(algorithm));
        }
        Self::ByRoot(Arc::new(move |root| {
            let mut algorithm = algorithm.clone();
            // An algorithm without a parameter `root` is for one root, with which `rooted` compares each call.
            _ = algorithm.set("root", ParamValue::Int(i64::from(root)));
            Box::new(algorithm)
        }))
    }
}

impl Chosen {
    /// Makes the choices for ranks on several hosts.
    pub(crate) fn over(spread: Spread) -> Self {
        Self { spread: Some(spread), ..Self::default() }
    }

    /// Makes the same choices for the ranks of `other`.
    pub(crate) fn on_hosts_of(&self, other: &Self) -> Self {
        Self { spread: other.spread.clone(), ..self.clone() }
    }

    pub(crate) fn promise(&mut self, promises: Promises) {
        self.promises = Some(promises);
    }

    /// Returns the promises that a call of a collective keeps.
    pub(crate) fn promises(&self, collective: Collective) -> Result<Promises, Error> {
        match self.promises {
            _ if !collective.reduces() => Ok(Promises::new()),
            Some(promises) => Ok(promises),
            None => Promises::of_process(),
        }
    }

    pub(crate) fn fixed(&mut self, up_to: u64, algorithm: Arc<dyn Algorithm + Send + Sync>) {
        let collective = algorithm.collective();
        self.insert(collective, up_to, CallAlgorithm::Fixed(algorithm));
    }

    pub(crate) fn by_root<A: Algorithm + 'static>(
        &mut self,
        up_to: u64,
        make: impl Fn(u32) -> A + Send + Sync + 'static,
    ) {
        let collective = make(0).collective();
        self.insert(
            collective,
            up_to,
            CallAlgorithm::ByRoot(Arc::new(move |root| Box::new(make(root)))),
        );
    }

    /// Uses `algorithm` for calls whose size in bytes is in the range, and leaves the choice for other sizes as it was.
    /// If the algorithm has a parameter `root`, it is set to the root of the call.
    pub(crate) fn between(&mut self, bytes: &RangeInclusive<u64>, algorithm: Configured) {
        if bytes.is_empty() {
            return;
        }
        let collective = algorithm.collective();
        let choice = CallAlgorithm::of(algorithm);
        let table = self.tables.entry(collective.name()).or_default();
        if let Some(below) = bytes.start().checked_sub(1) {
            let before = table.range(below..).next().map(|(_, choice)| choice.clone());
            table.insert(below, before.unwrap_or(CallAlgorithm::Library));
        }
        table.retain(|up_to, _| !bytes.contains(up_to));
        table.insert(*bytes.end(), choice);
    }

    fn insert(&mut self, collective: Collective, up_to: u64, choice: CallAlgorithm) {
        self.tables.entry(collective.name()).or_default().insert(up_to, choice);
    }

    /// Returns the proof of the algorithm that `call` runs on `nranks` ranks.
    pub(crate) fn of(&self, call: &Call, nranks: u32) -> Result<Proved, Error> {
        let promises = self.promises(call.collective)?;
        let found: Result<Proved, Error> = self.with(call, nranks, |algorithm| {
            let refused = |found| Error::from_findings(algorithm, nranks, found);
            let found = promises.demanded_of(proved(algorithm, nranks)?).map_err(refused)?;
            if promises.any() {
                for other in self.others(call, nranks)? {
                    let other =
                        self.resolve(&other, call, nranks, |other| proved(other, nranks))??;
                    promises
                        .apart(&found, &other)
                        .map_or(Ok(()), |apart| Err(refused(vec![apart])))?;
                }
            }
            Ok(found)
        })?;
        let found = found?;
        rooted(found.schedule(), call)?;
        Ok(found)
    }

    /// Returns the promises that the algorithm of a call keeps.
    pub(crate) fn order_of(&self, call: &Call, nranks: u32) -> Result<Promises, Error> {
        let of = |proved: &Proved| Promises::kept_by(proved).unwrap_or_default();
        let (Some(spread), Some([_, across, _])) = (&self.spread, self.levels(call, 0, nranks))
        else {
            return Ok(of(&self.of(call, nranks)?));
        };
        // Each host sums, one rank of each host sums these sums, and hosts hand the result on. Hosts may differ in their
        // ranks, so the order depends on where a contribution lies.
        let roundings = |algorithm: &dyn Algorithm, nranks: u32| {
            Ok::<_, Error>(of(&proved(algorithm, nranks)?).most_roundings().unwrap_or(0))
        };
        let among = roundings(&*across, spread.hosts().count() as u32)?;
        let mut inside = 0;
        for (rank, here) in spread.hosts() {
            let Some([reduce, ..]) = spread.levels(call, rank) else { continue };
            inside = inside.max(roundings(&*reduce, here)?);
        }
        Ok(Promises::new().keeping(OrderClass::AllRanks).roundings(inside + among))
    }

    /// Checks that the algorithm of a call keeps the promises, as those of the library that are chosen under promises
    /// always do.
    pub(crate) fn keeps_promises(&self, call: &Call, nranks: u32) -> Result<(), Error> {
        let promises = self.promises(call.collective)?;
        let of_library = matches!(self.choice(call, nranks)?, CallAlgorithm::Library);
        if !promises.any() || of_library && self.others(call, nranks)?.is_empty() {
            return Ok(());
        }
        self.of(call, nranks).map(drop)
    }

    /// Returns the choices for calls of the other sizes, where there are several.
    fn others(&self, call: &Call, nranks: u32) -> Result<Vec<CallAlgorithm>, Error> {
        let mut sizes: Vec<u64> = vec![u64::MAX];
        if let Some(table) = self.tables.get(call.collective.name()) {
            sizes.extend(table.keys().copied());
        }
        if let Some(selection) = Selection::of_process()? {
            let entries = selection.entries.iter();
            let these = entries.filter(|e| (e.collective, e.nranks) == (call.collective, nranks));
            sizes.extend(these.map(|entry| *entry.bytes.end()));
        }
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() == 1 {
            return Ok(Vec::new());
        }
        sizes.iter().map(|bytes| self.choice_at(call.collective, nranks, *bytes)).collect()
    }

    /// Returns the proof of the algorithm that calls of a shape run, and the count with which it runs.
    pub(crate) fn of_shape(&self, shape: &Shape, nranks: u32) -> Result<(Proved, u64), Error> {
        let Shape { call, counts } = shape;
        let proved = self.of(call, nranks)?;
        let Some(counts) = counts else { return Ok((proved, call.count)) };
        let counts = Counts::new(call.collective, nranks, counts)?;
        let algorithm = proved.schedule().algorithm.clone();
        let refused = |found: Vec<Finding>| {
            let title = found.into_iter().next().map_or_else(String::new, |found| found.title);
            let what = format!("{algorithm}: {title}");
            roundelay_kernels::Error::EqualCounts { what }
        };
        // A schedule for a vector of counts has units of one element.
        Ok((proved.for_counts(&counts).map_err(refused)?, 1))
    }

    /// Passes `then` the algorithm that `call` runs, and returns its result: the algorithm that the program chose, else
    /// the selection file's, else the library's.
    ///
    /// # Errors
    /// E0406 for a selection file that makes no sense.
    pub(crate) fn with<R>(
        &self,
        call: &Call,
        nranks: u32,
        then: impl FnOnce(&dyn Algorithm) -> R,
    ) -> Result<R, Error> {
        self.resolve(&self.choice(call, nranks)?, call, nranks, then)
    }

    /// Passes `then` the algorithm of a choice.
    fn resolve<R>(
        &self,
        choice: &CallAlgorithm,
        call: &Call,
        nranks: u32,
        then: impl FnOnce(&dyn Algorithm) -> R,
    ) -> Result<R, Error> {
        Ok(match choice {
            CallAlgorithm::Fixed(algorithm) => then(&**algorithm),
            CallAlgorithm::ByRoot(make) => then(&*make(call.root)),
            CallAlgorithm::Library if self.promises(call.collective)?.any() => {
                let ordered = Promises::algorithm(call.collective, call.root, nranks);
                then(&*ordered.expect("promises are of collectives that reduce"))
            }
            CallAlgorithm::Library => match &self.spread {
                Some(spread) => then(&*spread.algorithm(call, nranks)),
                None => then(&*of_library(call, nranks)),
            },
        })
    }

    /// Returns the algorithms of the two levels, for a call of `rank` of `nranks` that the library makes on two levels
    /// part by part.
    pub(crate) fn levels(
        &self,
        call: &Call,
        rank: u32,
        nranks: u32,
    ) -> Option<[Box<dyn Algorithm>; 3]> {
        if self.promises(call.collective).is_ok_and(|promises| promises.any()) {
            return None;
        }
        match self.choice(call, nranks) {
            Ok(CallAlgorithm::Library) => self.spread.as_ref()?.levels(call, rank),
            Ok(CallAlgorithm::Fixed(_) | CallAlgorithm::ByRoot(_)) | Err(_) => None,
        }
    }

    /// Takes it from now on that this is the link between hosts.
    pub(crate) fn joined_by(&self, wire: Wire) {
        if let Some(spread) = &self.spread {
            spread.joined_by(wire);
        }
    }

    fn choice(&self, call: &Call, nranks: u32) -> Result<CallAlgorithm, Error> {
        let bytes = call.collective.bytes(call.count, nranks, call.dtype.size() as u64);
        self.choice_at(call.collective, nranks, bytes)
    }

    fn choice_at(
        &self,
        collective: Collective,
        nranks: u32,
        bytes: u64,
    ) -> Result<CallAlgorithm, Error> {
        let table = self.tables.get(collective.name());
        let chosen = table.and_then(|table| table.range(bytes..).next());
        match chosen.map_or(&CallAlgorithm::Library, |found| found.1) {
            CallAlgorithm::Library => {}
            chosen => return Ok(chosen.clone()),
        }
        let selected = Selection::of_process()?
            .and_then(|selection| selection.find(collective, nranks, bytes));
        Ok(selected
            .map_or(CallAlgorithm::Library, |entry| CallAlgorithm::of(entry.algorithm.clone())))
    }
}

/// Whether a schedule is for the root of the call.
pub(crate) fn rooted(schedule: &Schedule, call: &Call) -> Result<(), Error> {
    if call.collective.is_rooted() && schedule.root.0 != call.root {
        let (algorithm, root) = (schedule.algorithm.clone(), schedule.root.0);
        return Err(Error::WrongRoot { algorithm, root, called: call.root });
    }
    Ok(())
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = |table: &BTreeMap<u64, CallAlgorithm>| -> Vec<(u64, String)> {
            let name = |choice: &CallAlgorithm| match choice {
                CallAlgorithm::Library => "the library's".to_owned(),
                CallAlgorithm::Fixed(algorithm) => algorithm.name().to_owned(),
                CallAlgorithm::ByRoot(make) => make(0).name().to_owned(),
            };
            table.iter().map(|(up_to, choice)| (*up_to, name(choice))).collect()
        };
        f.debug_map().entries(self.tables.iter().map(|(name, all)| (name, table(all)))).finish()
    }
}
