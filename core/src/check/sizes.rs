//! Sizes in bytes, and the size classes of an executor.

use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{self, BinOp, SettingValue};
use crate::syntax::token::Quantity;

use super::scope;
use crate::units::{SIZE_UNITS, size_text};

/// Returns the limit of each size class, and reports errors in their order. `units` are the units of the larger of a
/// rank's two buffers, where they are known: the size of a call is a multiple of them.
pub(super) fn limits(
    executor: &ast::Executor,
    units: Option<u64>,
    errors: &mut Vec<Diagnostic>,
) -> Vec<Option<u64>> {
    let mut limits = Vec::new();
    // The largest limit up to now, and its place.
    let mut largest: Option<(u64, Span)> = None;
    let mut rest: Option<Span> = None;
    for class in &executor.classes {
        if let Some(rest) = rest {
            let title = "this size class is never reached";
            errors.push(
                Diagnostic::new(Code::SizeClasses, class.span, title)
                    .label("nothing is left for it")
                    .other(rest, "takes all sizes that are left")
                    .help("put `otherwise` last"),
            );
        }
        limits.push(match &class.when {
            None => {
                rest.get_or_insert(class.span);
                None
            }
            Some((measure, op, below)) => limit(measure, *op, below, errors).inspect(|below| {
                let at = class.when.as_ref().map_or(class.span, |(_, _, value)| value.span());
                match largest {
                    Some((before, first)) if *below <= before => errors.push(
                        Diagnostic::new(Code::SizeClasses, at, "this size class is never reached")
                            .label(format!("{} and less is taken already", size_text(*below)))
                            .other(first, format!("takes all below {}", size_text(before)))
                            .help("order the classes by size, the smallest first"),
                    ),
                    _ => {
                        let from = largest.map_or(0, |(before, _)| before);
                        let holds_none = |units| no_call(from, *below, units).map(|e| e(at));
                        errors.extend(units.and_then(holds_none));
                        largest = Some((*below, at));
                    }
                }
            }),
        });
    }
    if rest.is_none() {
        let title = format!("executor `{}` says nothing of some sizes", executor.name.text);
        let mut error = Diagnostic::new(Code::SizeClasses, executor.name.span, title);
        if let Some((largest, at)) = largest {
            error = error.other(at, format!("nothing takes {} and more", size_text(largest)));
        }
        errors.push(error.help("end it with `otherwise => ALGORITHM;`"));
    }
    limits
}

/// Reports that no call has a size of `from..below`: all sizes are multiples of `units` bytes, and a call of 0 bytes is
/// of no use.
fn no_call(from: u64, below: u64, units: u64) -> Option<impl FnOnce(Span) -> Diagnostic> {
    let least = from.max(1).checked_next_multiple_of(units);
    if least.is_some_and(|least| least < below) {
        return None;
    }
    Some(move |at| {
        let title = match from {
            0 => format!("no call has fewer than {}", size_text(below)),
            _ => format!("no call has a size from {} to {}", size_text(from), size_text(below - 1)),
        };
        let more = least.filter(|least| i64::try_from(*least).is_ok());
        let error = Diagnostic::new(Code::SizeClasses, at, title)
            .label("an empty class")
            .note(format!("units: {units}, so sizes are multiples of {}", size_text(units)));
        match more {
            Some(least) => {
                error.help(format!("end it above {}, or leave it out", size_text(least)))
            }
            None => error.help("leave it out"),
        }
    })
}

/// Reads `bytes < 64 KiB`; returns the first size that is too large.
fn limit(
    measure: &ast::Name,
    op: BinOp,
    below: &SettingValue,
    errors: &mut Vec<Diagnostic>,
) -> Option<u64> {
    if measure.text != "bytes" {
        let title = format!("a size class compares `bytes`, not `{}`", measure.text);
        errors.push(
            Diagnostic::new(Code::SizeClasses, measure.span, title)
                .help("write `when bytes < 64 KiB`: the size that nccl-tests prints"),
        );
    }
    let more = match op {
        BinOp::Lt => 0,
        BinOp::Le => 1,
        _ => {
            let title = format!("a size class ends at a size, and `{}` begins at one", op.text());
            errors.push(
                Diagnostic::new(Code::SizeClasses, measure.span, title)
                    .help("write `when bytes < …`, the smallest class first"),
            );
            return None;
        }
    };
    let Some(bytes) = bytes(below) else {
        errors.push(not_a_size(below));
        return None;
    };
    if bytes + more == 0 {
        let title = "no size is below 0 bytes";
        errors
            .push(Diagnostic::new(Code::SizeClasses, below.span(), title).label("an empty class"));
        return None;
    }
    Some(bytes + more)
}

pub(super) fn not_a_size(value: &SettingValue) -> Diagnostic {
    let mut error = Diagnostic::new(Code::BadSetting, value.span(), "this is no size in bytes");
    if let SettingValue::Size(size) = value {
        let units = SIZE_UNITS.map(|(name, _)| name);
        if units.contains(&&*size.unit.text) {
            return error.note("sizes fit 63 bits");
        }
        error = match scope::nearest(&size.unit.text, units) {
            Some(near) => error.suggest(&format!("{} {near}", size.amount)),
            None => error.note(format!("units are {}", units.join(", "))),
        };
        return error;
    }
    error.help("write such as `200 MiB`")
}

pub(super) fn bytes(value: &SettingValue) -> Option<u64> {
    match value {
        SettingValue::Expr(_) => number(value),
        SettingValue::Amount(Quantity::Bytes(bytes), _) => Some(*bytes),
        SettingValue::Amount(..) => None,
        SettingValue::Size(size) => {
            let (_, unit) = SIZE_UNITS.into_iter().find(|(name, _)| *name == size.unit.text)?;
            u64::try_from(size.amount).ok()?.checked_mul(unit).filter(|b| i64::try_from(*b).is_ok())
        }
    }
}

/// Returns a bare number.
pub(super) fn number(value: &SettingValue) -> Option<u64> {
    let SettingValue::Expr(value) = value else { return None };
    let ast::ExprKind::Int(value) = *value.kind else { return None };
    u64::try_from(value).ok()
}

impl SettingValue {
    /// Returns the place of the value.
    pub(super) fn span(&self) -> Span {
        match self {
            Self::Expr(value) => value.span,
            Self::Size(size) => size.span,
            Self::Amount(_, span) => *span,
        }
    }
}
