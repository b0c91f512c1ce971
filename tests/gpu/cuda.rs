//! Kernels on a GPU.

use std::time::Duration;

use cudarc::driver::CudaSlice;
use roundelay_core::ids::RankId;
use roundelay_kernels::Stuck;
use roundelay_kernels::cuda::{CudaOptions, CudaPlan, CudaWorld, Error};

use crate::cases::Case;
use crate::engine::Engine;

/// Launches between two looks at the results.
const BETWEEN: u32 = 10;
/// No kernel here takes nearly as long.
const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Cuda {
    device: usize,
    name: String,
}

impl Cuda {
    pub(crate) fn new(device: usize) -> Result<Self, String> {
        let world = CudaWorld::on(&[device], 1).map_err(coded)?;
        let name = world.names().next().unwrap_or("a GPU").to_owned();
        Ok(Self { device, name })
    }

    fn plan(&self, case: &Case, deadline: Duration) -> Result<(CudaWorld, CudaPlan), String> {
        let world = CudaWorld::on(&[self.device], case.nranks).map_err(coded)?;
        let options = CudaOptions::new().deadline(deadline);
        let kernel = case.kernel()?;
        let plan = CudaPlan::of_kernel(&world, kernel, case.data.count as u64, options);
        Ok((world, plan.map_err(coded)?))
    }
}

fn coded(error: Error) -> String {
    format!("[{}] {error}", error.code())
}

fn driver(error: cudarc::driver::DriverError) -> String {
    error.to_string()
}

/// One slice per rank, of one of its lengths.
fn slices(
    world: &CudaWorld,
    what: &str,
    lens: impl Iterator<Item = usize>,
) -> Result<Vec<CudaSlice<u8>>, String> {
    let ranks = (0..).map(RankId).zip(lens);
    ranks.map(|(rank, len)| world.buffer(what, rank, len).map_err(coded)).collect()
}

impl Engine for Cuda {
    fn about(&self) -> String {
        format!(
            "kernels on device {}, {}: all ranks are virtual ranks on it",
            self.device, self.name
        )
    }

    fn is_slow(&self) -> bool {
        false
    }

    fn run(&self, case: &Case, in_place: bool, repeats: u32) -> Result<Vec<Vec<u8>>, String> {
        let (world, plan) = self.plan(case, DEADLINE)?;
        let (stream, buffers, data) = (world.stream(), case.buffers(), case.inputs());
        let len = |b: &roundelay_kernels::grid::Buffers| if in_place { b.shared } else { b.output };
        let mut outputs = slices(&world, "output", buffers.iter().map(len))?;
        let mut inputs = slices(&world, "input", buffers.iter().map(|b| b.input))?;
        for (slice, bytes) in inputs.iter_mut().zip(&data) {
            stream.memcpy_htod(bytes, &mut slice.slice_mut(..bytes.len())).map_err(driver)?;
        }
        let mut results: Option<Vec<Vec<u8>>> = None;
        for launched in 1..=repeats {
            for (((slice, b), input), bytes) in
                outputs.iter_mut().zip(&buffers).zip(&inputs).zip(&data)
            {
                stream.memset_zeros(slice).map_err(driver)?;
                if in_place {
                    let mut place = slice.slice_mut(b.input_at..b.input_at + bytes.len());
                    stream.memcpy_dtod(&input.slice(..bytes.len()), &mut place).map_err(driver)?;
                }
            }
            let lens = buffers.iter().map(len);
            let mut to: Vec<_> =
                outputs.iter_mut().zip(lens).map(|(s, len)| s.slice_mut(..len)).collect();
            let started = if in_place {
                plan.launch_bytes_in_place(&stream, &mut to)
            } else {
                let lens = data.iter().map(Vec::len);
                let from: Vec<_> = inputs.iter().zip(lens).map(|(s, len)| s.slice(..len)).collect();
                plan.launch_bytes(&stream, &from, &mut to)
            };
            started.map_err(coded)?;
            if launched % BETWEEN != 0 && launched != repeats {
                continue;
            }
            plan.wait().map_err(coded)?;
            let mut got = Vec::new();
            for (slice, b) in outputs.iter().zip(&buffers) {
                let at = if in_place { b.output_at } else { 0 };
                let bytes = stream.clone_dtoh(&slice.slice(at..at + b.output)).map_err(driver)?;
                got.push(bytes);
            }
            stream.synchronize().map_err(driver)?;
            match &results {
                Some(before) if *before != got => {
                    return Err(format!("launch {launched} gave another result than those before"));
                }
                _ => results = Some(got),
            }
        }
        results.ok_or_else(|| "it was never launched".to_owned())
    }

    fn stuck(&self, case: &Case) -> Result<Stuck, String> {
        let (world, plan) = self.plan(case, Duration::from_millis(300))?;
        let (plan, stream) = (plan.without_last_rank(), world.stream());
        let inputs = slices(&world, "input", case.buffers().iter().map(|b| b.input))?;
        let mut outputs = slices(&world, "output", case.buffers().iter().map(|b| b.output))?;
        let mut timeout = || {
            plan.launch_bytes(&stream, &inputs, &mut outputs).map_err(coded)?;
            match plan.wait() {
                Err(Error::Host(roundelay_kernels::Error::Timeout(stuck))) => Ok(*stuck),
                Err(error) => Err(coded(error)),
                Ok(()) => Err("no wait gave up".to_owned()),
            }
        };
        let (first, second) = (timeout()?, timeout()?);
        // Which wait gives up first is chance, but all counters begin anew.
        if first.seen == second.seen {
            Ok(first)
        } else {
            Err(format!("the first run left something behind: {first}, then {second}"))
        }
    }
}
