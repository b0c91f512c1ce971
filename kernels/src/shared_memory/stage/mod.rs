//! The engine of a call: how the data of a call goes through the arena. A plan chooses a strategy and cuts its calls into
//! tiles; a call stages the tiles of a rank's input, and takes or reduces those of other ranks.

pub(crate) mod blocks;
pub(crate) mod geometry;
pub(crate) mod plan;
pub(crate) mod plan_sharing;
pub(crate) mod pull;
pub(crate) mod remote_read;
pub(crate) mod routes;
pub(crate) mod run;
pub(crate) mod run_pull;
pub(crate) mod run_split;
pub(crate) mod segment_statements;
pub(crate) mod split;
pub(crate) mod strategy;
pub(crate) mod streams;
pub(crate) mod work_counter;
