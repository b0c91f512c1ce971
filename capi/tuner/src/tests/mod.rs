//! The levels of trees against whole machines, and the choices that follow, by NCCL's formula of costs.

mod choices;
mod formula;
mod machines;
