//! Contest-style executors: blocks of the language that choose an algorithm by size, the framework that runs them,
//! and the registry that finds them by name.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

pub use roundelay_kernels::executor::{
    CommInfo, Compiled, CompiledExecutor, ExecMem, Executor, ExecutorLink, Exposed, Flags,
    Framework, OpParam, Ran,
};

use crate::Error;

type Registry = BTreeMap<String, Arc<dyn Executor>>;

/// The executors by name; at first the library's.
static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(|| {
    let own: [Arc<dyn Executor>; 2] =
        [Arc::new(library::CustomHugeAllReduceMesh), Arc::new(library::AllLinksAllReduceMesh)];
    Mutex::new(own.into_iter().map(|executor| (executor.name().to_owned(), executor)).collect())
});

/// The executors that come with Roundelay.
pub mod library {
    use roundelay_macros::include_library;

    include_library!("contest.coll");
}

/// Registers `executor` under its own name, by which [`find`] finds it from then on, in the whole process.
///
/// # Errors
/// E0102 where an executor of that name is registered already.
pub fn register(executor: impl Executor + 'static) -> Result<(), Error> {
    let name = executor.name().to_owned();
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if registry.contains_key(&name) {
        return Err(Error::Registered(name));
    }
    registry.insert(name, Arc::new(executor));
    Ok(())
}

/// Returns the executor that is registered under `name`, if there is one: yours, or one of the [`library`].
pub fn find(name: &str) -> Option<Arc<dyn Executor>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// Returns the names of all registered executors, in alphabetical order.
pub fn names() -> Vec<String> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
