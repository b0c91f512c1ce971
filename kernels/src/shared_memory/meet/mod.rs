//! How the processes of a host meet: the id of a world, the variables of launchers, the door at which ranks come
//! together, the memory that they get there, and the handles by which a rank sees that another process has ended.

pub(crate) mod ending;
pub(crate) mod env;
#[cfg_attr(test, allow(dead_code, reason = "threads of a model sleep otherwise"))]
pub(crate) mod futex;
pub(crate) mod join;
pub(crate) mod mapping;
pub(crate) mod other_memory;
pub(crate) mod system;
pub(crate) mod unique;
