//! The costs of an algorithm: counted in its schedule, or by the closed form of its family, and the time that follows
//! from either.

mod constants;
mod counts;
mod fit;
mod forms;
mod gpus;
mod model;
mod term;

pub use constants::GivenCosts;
pub use counts::{Counts, Work};
pub use fit::{Fit, Sample, fit};
pub use forms::{Admits, CostForm, FORMS, form_of, markdown, of_algorithm};
pub use model::{Costs, Origin, Time, has_latency, read_rate, read_time};
pub use term::Term;
