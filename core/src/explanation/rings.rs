//! Explains an algorithm that is right in the natural order of a ring, and wrong in another: it uses ranks in place
//! of positions.

use super::proved;
use crate::diagnostics::Diagnostic;
use crate::layout::Configured;
use crate::values::params::ParamTy;
use crate::verify::parametric;

/// Adds the explanation to `error` where it applies; returns whether it does.
pub(super) fn explain(error: &mut Diagnostic, algorithm: &Configured, nranks: u32) -> bool {
    let natural = algorithm.in_natural_order().and_then(|natural| proved(&natural, nranks));
    if natural != Some(true) {
        return false;
    }
    error.notes.push(
        "the ring is not in natural order: the algorithm is proved where it is 0, 1, 2, …".into(),
    );
    // The proof for every rank count knows where ranks are used as positions, in rings of any order.
    let mut any = (**algorithm.program()).clone();
    for param in any.params.iter_mut().filter(|param| param.ty == ParamTy::Ring) {
        param.default = None;
    }
    if let Err(outside) = parametric::prove(&any)
        && outside.ring
    {
        error.others.push((outside.at, outside.what));
    }
    let help = "where a place in the ring is meant, write `ring.position` and not `rank`; \
                the rank at place i is `ring[i].rank`";
    error.help = Some(help.to_owned());
    true
}
