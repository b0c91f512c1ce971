//! A kernel of a rank in a world of processes, before the ranks share memory.

use roundelay_core::ids::RankId;
use roundelay_export::cuda::{Facts, Form, Kernel};
use sha2::{Digest as _, Sha256};

use super::super::device_plan::Functions;
use super::super::error::Error;
use super::super::options::CudaOptions;
use super::super::plan::{
    SCOPE_SYS, call_of, check_threads, fitted, has_switch, keeps_lines, resident_parts,
};
use super::rank::CudaRank;
use super::registry::{self, Registry};
use crate::lowering::plan_call::PlannedCall;

/// The macro of kernels whose posts are stores and no atomic additions.
const ONE_WRITER: &str = "ROUNDELAY_ONE_WRITER";
/// The macro of kernels that copy the caller's buffers into their stages and out of them.
const STAGED: &str = "ROUNDELAY_STAGED";
/// The macro of kernels whose buffers may be those of the caller.
const REGISTERED: &str = "ROUNDELAY_REGISTERED";

/// A kernel that this rank has compiled and loaded, before the ranks share memory.
pub(super) struct LoadedKernel {
    pub(super) kernel: Kernel,
    pub(super) call: PlannedCall,
    pub(super) facts: Facts,
    pub(super) functions: Functions,
    pub(super) parts: u32,
    pub(super) registry: Result<Registry, String>,
    pub(super) digest: [u8; 32],
}

/// Returns the fewest parts of any rank, where all ranks made the same kernel.
pub(super) fn agreed_parts(
    rank: &CudaRank,
    kernel: &Kernel,
    count: u64,
    digest: &[u8; 32],
    told: &[Vec<u8>],
) -> Result<u32, Error> {
    let mut parts = u32::MAX;
    for (other, told) in (0..).map(RankId).zip(told) {
        let Some((theirs, rest)) = told.split_first_chunk::<32>() else { continue };
        if theirs != digest {
            let call = |whose: &str| format!("{whose} {} for {count} elements a unit", kernel.name);
            let differ = crate::error::Differ {
                number: 0,
                ranks: [rank.rank(), other],
                calls: [call("a plan of"), format!("another plan than {}", kernel.name)],
                reason: None,
                late: None,
            };
            return Err(crate::Error::CallsDiffer(Box::new(differ)).into());
        }
        let theirs = rest.try_into().map_or(1, u32::from_le_bytes);
        parts = parts.min(theirs);
    }
    Ok(parts)
}

impl LoadedKernel {
    pub(super) fn new(
        rank: &CudaRank,
        kernel: Kernel,
        count: u64,
        options: CudaOptions,
    ) -> Result<Self, Error> {
        let shared = rank.shared();
        let call = call_of(&kernel, rank.nranks(), count)?;
        keeps_lines(&kernel, || {
            shared.torn.map(|(from, to, way)| format!("rank {from} reaches rank {to}: {way}"))
        })?;
        let threads = check_threads(options.threads)?;
        let facts = kernel.facts(count);
        let registration = options.registers()?;
        has_switch(&kernel, || shared.no_switch.clone())?;
        let by_switch = (kernel.form == Form::Switch)
            .then(|| "a switch reaches the memory of the plan alone".to_owned());
        let none = by_switch.or_else(|| registry::reason_for_none(rank, &call, registration));
        let registry = match none {
            Some(why) => Err(why),
            None => Ok(Registry::new(registration)),
        };
        let mut defines = vec![SCOPE_SYS, STAGED];
        defines.extend(shared.torn.is_some().then_some(ONE_WRITER));
        defines.extend(registry.is_ok().then_some(REGISTERED));
        let fitted = fitted(&kernel, &rank.device, &defines, threads)?;
        let functions =
            Functions::load(&rank.device, &kernel, &fitted.compiled, facts.scale_outputs, threads)?;
        let groups = facts.groups.iter().filter(|group| group.rank == rank.rank()).count() as u64;
        let rooms = [(groups, functions.resident(&rank.device)?)];
        let parts = resident_parts(&kernel, count, options, &rooms, |_| 1)?;
        let mut hash = Sha256::new();
        hash.update(&kernel.text);
        let about = format!("{count} {} {:?} {threads} {registration:?}", kernel.name, kernel.spec);
        hash.update(about);
        for word in &facts.words {
            hash.update(word.to_le_bytes());
        }
        let digest = hash.finalize().into();
        Ok(Self { kernel, call, facts, functions, parts, registry, digest })
    }
}
