//! `roundelay list`: the algorithms, their costs, and (`--why`) which of them is the fastest.

mod facts;
mod filters;
mod why;

use roundelay::{Collective, select};
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::{Algorithm, Configured};

use crate::parallel::side_by_side;
use crate::program::{compile, read};
use crate::report::{Failure, Format, refuse, wrong};
use crate::streams::{print, print_json, remark};
use crate::values::{collective_named, collectives};
use facts::Listed;
pub(crate) use filters::ListFlags;

/// The rank count that is shown unless another is asked for.
const SHOWN: u32 = 8;

pub(crate) fn main(flags: &ListFlags) -> Result<bool, Failure> {
    let (source, collective) = wanted(flags)?;
    if flags.why {
        let mut own = source.map_or(Ok(vec![]), |name| of_source(name, flags.format))?;
        let mut of_own: Vec<_> = own.iter().map(Algorithm::collective).collect();
        of_own.dedup();
        let collective = match (collective, &of_own[..]) {
            (Some(collective), _) => collective,
            (None, [one]) => *one,
            (None, _) => {
                let title = "--why ranks algorithms for one collective, and none is named";
                return Err(Failure::usage(Code::BadFlag, title)
                    .with_help(format!("name one by --collective: {}", collectives())));
            }
        };
        if !own.is_empty() && !of_own.contains(&collective) {
            let source = source.unwrap_or_default();
            let title = format!("`{source}` has no algorithm for {}", collective.name());
            return Err(Failure::usage(Code::BadFlag, title));
        }
        // A name of the library is ranked with it.
        own.retain(|a| source != Some(a.name()));
        return why::main(flags, collective, &own);
    }
    let algorithms = match source {
        None => select::library().to_vec(),
        Some(name) => of_source(name, flags.format)?,
    };
    let nranks = flags.nranks.unwrap_or(SHOWN);
    let wanted: Vec<&Configured> = algorithms
        .iter()
        .filter(|a| collective.is_none_or(|wanted| a.collective() == wanted))
        .collect();
    let listed = side_by_side("algorithms", &wanted, |algorithm| Listed::new(algorithm, nranks));
    match flags.format {
        Format::Json => print_json(&listed),
        Format::Human => {
            for algorithm in &listed {
                print(&algorithm.lines().join("\n"));
            }
            remark(&format!("\n{}", facts::LEGEND));
        }
    }
    Ok(true)
}

/// Returns the source and the collective that the flags name. A collective may stand in a source's place.
fn wanted(flags: &ListFlags) -> Result<(Option<&str>, Option<Collective>), Failure> {
    let named = flags.collective;
    match flags.source.as_deref().map(|source| (source, collective_named(source))) {
        None => Ok((None, named)),
        Some((_, Some(collective))) if named.is_none_or(|named| named == collective) => {
            Ok((None, Some(collective)))
        }
        Some((source, Some(_))) => {
            let named = named.map_or("", Collective::name);
            let title = format!("`{source}` and --collective {named} are two collectives");
            Err(Failure::usage(Code::BadFlag, title).with_help("name one"))
        }
        Some((source, None)) => Ok((Some(source), named)),
    }
}

/// Returns the algorithms of a source; one alone where the source is its name.
fn of_source(name: &str, format: Format) -> Result<Vec<Configured>, Failure> {
    let source = read(name)?;
    let program = compile(&source).map_err(|errors| refuse(format, &errors, &source, wrong))?;
    let alone = program.algorithms.iter().any(|algorithm| algorithm.name == name);
    let wanted = program.algorithms.into_iter().filter(|a| !alone || a.name == name);
    Ok(wanted.map(|algorithm| Configured::new(algorithm, &source)).collect())
}
