//! Kernels on a GPU.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_kernels::Stuck;
use roundelay_kernels::cuda::{Arch, CudaOptions, CudaPlan, CudaWorld, Error, Rooms, Target, fit};

use super::cases::Case;
use super::engine::{Engine, blames_last};

/// Launches between two looks at the results.
const BETWEEN: u32 = 10;

pub(crate) struct Cuda {
    device: usize,
    name: String,
    kernels: Kernels,
    /// For how long a wait may last.
    patience: Duration,
    /// Whether the device has little room and little speed.
    small: bool,
}

/// Whether each text compiles, by a digest of it. A thread that needs a text which another thread compiles waits for
/// it.
type Compiled = HashMap<u64, Arc<OnceLock<Result<(), String>>>>;

/// Kernels that are compiled for a generation of GPUs, ahead of their launches.
pub(crate) struct Kernels {
    arch: Arch,
    compiled: Mutex<Compiled>,
}

impl Kernels {
    pub(crate) fn new(arch: Arch) -> Self {
        Self { arch, compiled: Mutex::default() }
    }

    pub(crate) fn compile(&self, case: &Case) -> Result<(), String> {
        let kernel = case.kernel()?;
        let mut digest = DefaultHasher::new();
        kernel.text.hash(&mut digest);
        let of_text = self.all().entry(digest.finish()).or_default().clone();
        let fitted = of_text.get_or_init(|| {
            let fitted = fit(&kernel.text, &kernel.name, &Target::new(self.arch));
            fitted.map(drop).map_err(|error| coded(&error))
        });
        fitted.clone()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, Compiled> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cuda {
    pub(crate) fn new(device: usize, patience: Duration, small: bool) -> Result<Self, String> {
        let world = CudaWorld::on_devices(&[device], 1).map_err(|error| coded(&error))?;
        let name = world.names().next().unwrap_or("a GPU").to_owned();
        let capability = world.context(RankId(0)).compute_capability();
        let (major, minor) = capability.map_err(|error| format!("{error:?}"))?;
        let arch = Arch::of_capability(major as u32, minor as u32);
        let kernels = Kernels::new(arch.map_err(|error| coded(&error))?);
        Ok(Self { device, name, kernels, patience, small })
    }

    fn plan(&self, case: &Case, deadline: Duration) -> Result<(CudaWorld, CudaPlan), String> {
        let world =
            CudaWorld::on_devices(&[self.device], case.nranks).map_err(|error| coded(&error))?;
        let options = CudaOptions::new().deadline(deadline);
        let plan = CudaPlan::of_kernel(&world, case.kernel()?, case.data.count as u64, options);
        Ok((world, plan.map_err(|error| coded(&error))?))
    }

    /// The wait that is reported where the last rank never runs.
    pub(crate) fn stuck(&self, case: &Case) -> Result<Stuck, String> {
        let (world, mut plan) = self.plan(case, Duration::from_millis(300))?;
        let rooms = Rooms::new(&world, case.buffers(), &case.inputs());
        let (mut rooms, stream) = (rooms.map_err(|error| coded(&error))?, world.stream());
        let mut report = Err("it was never launched".to_owned());
        plan.leave_out_last_rank(true);
        for _ in 0..3 {
            rooms.launch(&plan, &stream, false).map_err(|error| coded(&error))?;
            report = match plan.wait() {
                Err(Error::Host(roundelay_kernels::Error::Timeout(stuck))) => Ok(*stuck),
                Err(error) => Err(coded(&error)),
                Ok(()) => Err("no wait gave up".to_owned()),
            };
        }
        // Posts that no wait took would count as new ones.
        plan.leave_out_last_rank(false);
        let expected = case.expected(false).ok_or("the host has no result")?;
        for _ in 0..BETWEEN {
            rooms.clear().map_err(|error| coded(&error))?;
            rooms.launch(&plan, &stream, false).map_err(|error| coded(&error))?;
            plan.wait().map_err(|error| format!("after it: {}", coded(&error)))?;
            if rooms.results(false).map_err(|error| coded(&error))? != expected {
                return Err("after it, results are wrong".to_owned());
            }
        }
        report
    }
}

fn coded(error: &Error) -> String {
    format!("[{}] {error}", error.code())
}

/// Returns the results after `repeats` consecutive launches, which are also checked in between.
fn launches(
    world: &CudaWorld,
    plan: &CudaPlan,
    case: &Case,
    in_place: bool,
    repeats: u32,
) -> Result<Result<Vec<Vec<u8>>, String>, Error> {
    let mut rooms = Rooms::new(world, case.buffers(), &case.inputs())?;
    let (stream, mut before) = (world.stream(), None);
    for launched in 1..=repeats {
        // Bytes that are not written again would be right from the last time; in place, inputs are gone.
        if in_place {
            rooms.enter()?;
        } else if launched % BETWEEN == 1 {
            rooms.clear()?;
        }
        rooms.launch(plan, &stream, in_place)?;
        if launched % BETWEEN == 0 || launched == repeats {
            plan.wait()?;
            let results = rooms.results(in_place)?;
            if before.as_ref().is_some_and(|before| *before != results) {
                return Ok(Err(format!("launch {launched} gave another result than those before")));
            }
            before = Some(results);
        }
    }
    Ok(before.ok_or_else(|| "it was never launched".to_owned()))
}

impl Engine for Kernels {
    fn about(&self) -> String {
        format!("kernels for {}: none is run", self.arch)
    }

    fn is_slow(&self) -> bool {
        false
    }

    fn run(&self, _: &Case, _: bool, _: u32) -> Result<Vec<Vec<u8>>, String> {
        Err("kernels are compiled only".to_owned())
    }

    fn without_last(&self, _: &Case) -> Result<String, String> {
        Err("kernels are compiled only".to_owned())
    }
}

impl Engine for Cuda {
    fn about(&self) -> String {
        let Self { device, name, .. } = self;
        format!("kernels on device {device}, {name}: all ranks are virtual ranks on it")
    }

    fn is_slow(&self) -> bool {
        self.small
    }

    fn prepare(&self, case: &Case) -> Result<(), String> {
        self.kernels.compile(case)
    }

    fn is_lost(&self) -> bool {
        // After a fault, no call of this process to this device succeeds.
        let world = CudaWorld::on_devices(&[self.device], 1);
        world.and_then(|world| world.buffer("a probe", RankId(0), 1).map(drop)).is_err()
    }

    fn run(&self, case: &Case, in_place: bool, repeats: u32) -> Result<Vec<Vec<u8>>, String> {
        let (world, plan) = self.plan(case, self.patience)?;
        launches(&world, &plan, case, in_place, repeats).map_err(|error| coded(&error))?
    }

    fn without_last(&self, case: &Case) -> Result<String, String> {
        blames_last(&self.stuck(case)?, case.nranks)
    }
}
