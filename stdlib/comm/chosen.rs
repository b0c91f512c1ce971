//! The algorithms that a communicator was told to use: for each collective a table by size.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use roundelay_core::verify::Proved;

use super::Call;
use crate::plans::proved;
use crate::{Algorithm, Collective, Error};

/// By collective, and then by the size in bytes up to which an algorithm is used.
#[derive(Clone, Default)]
pub(super) struct Chosen(BTreeMap<&'static str, BTreeMap<u64, Choice>>);

/// What makes the algorithm of a call.
#[derive(Clone)]
enum Choice {
    Fixed(Arc<dyn Algorithm + Send + Sync>),
    ByRoot(Arc<dyn Fn(u32) -> Box<dyn Algorithm> + Send + Sync>),
}

impl Chosen {
    pub(super) fn fixed(&mut self, up_to: u64, algorithm: Arc<dyn Algorithm + Send + Sync>) {
        let collective = algorithm.collective();
        self.insert(collective, up_to, Choice::Fixed(algorithm));
    }

    pub(super) fn by_root<A: Algorithm + 'static>(
        &mut self,
        up_to: u64,
        make: impl Fn(u32) -> A + Send + Sync + 'static,
    ) {
        let collective = make(0).collective();
        self.insert(collective, up_to, Choice::ByRoot(Arc::new(move |root| Box::new(make(root)))));
    }

    fn insert(&mut self, collective: Collective, up_to: u64, choice: Choice) {
        self.0.entry(collective.name()).or_default().insert(up_to, choice);
    }

    /// The proof of the algorithm that was chosen for such a call of `nranks` ranks; `None` where none was.
    pub(super) fn proved(&self, call: &Call, nranks: u32) -> Option<Result<Proved, Error>> {
        let bytes = call.collective.bytes(call.count, nranks, call.dtype.size() as u64);
        let table = self.0.get(call.collective.name())?;
        let (_, choice) = table.range(bytes..).next()?;
        let found = match choice {
            Choice::Fixed(algorithm) => proved(&**algorithm, nranks),
            Choice::ByRoot(make) => proved(&*make(call.root), nranks),
        };
        Some(found.and_then(|proved| rooted(proved, call)))
    }
}

/// A proof for the root of the call.
fn rooted(proved: Proved, call: &Call) -> Result<Proved, Error> {
    let schedule = proved.schedule();
    if call.collective.is_rooted() && schedule.root.0 != call.root {
        let (algorithm, root) = (schedule.algorithm.clone(), schedule.root.0);
        return Err(Error::WrongRoot { algorithm, root, called: call.root });
    }
    Ok(proved)
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = |table: &BTreeMap<u64, Choice>| -> Vec<(u64, String)> {
            let name = |choice: &Choice| match choice {
                Choice::Fixed(algorithm) => algorithm.name().to_owned(),
                Choice::ByRoot(make) => make(0).name().to_owned(),
            };
            table.iter().map(|(up_to, choice)| (*up_to, name(choice))).collect()
        };
        f.debug_map().entries(self.0.iter().map(|(name, all)| (name, table(all)))).finish()
    }
}
