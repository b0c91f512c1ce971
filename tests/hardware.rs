//! The comparison of a device with the interpreter of PTX, with the interpreter in the device's place.

#[path = "gpu/forms.rs"]
mod forms;
#[path = "gpu/instructions.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod instructions;
#[path = "gpu/litmus.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod litmus;
#[path = "gpu/machines.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod machines;
#[path = "gpu/operands.rs"]
mod operands;
#[path = "../kernels/ptx/tests/programs.rs"]
mod programs;

use std::time::Duration;

use litmus::{Extent, check};
use machines::{Interpreter, Job, Machine};

/// The interpreter with other results: a bit of one row of the form `wrong`, and none of a text with `refused` in it.
struct Altered {
    wrong: &'static str,
    refused: &'static str,
}

impl Machine for Altered {
    fn run(&self, text: &str, jobs: &[Job]) -> Result<Vec<Vec<Vec<u8>>>, String> {
        if text.contains(self.refused) {
            return Err("no such instruction".to_owned());
        }
        let mut ran = Interpreter(1).run(text, jobs)?;
        let kernels: Vec<&str> = text.split(".visible").skip(1).collect();
        for (job, buffers) in jobs.iter().zip(&mut ran) {
            let number: usize = job.kernel.strip_prefix("form").map_or(0, |n| n.parse().unwrap());
            if kernels[number].contains(self.wrong) {
                buffers[1][8 * 1000] ^= 1;
            }
        }
        Ok(ran)
    }
}

#[test]
fn every_form_is_executed_and_another_bit_is_told() {
    let all = forms::all();
    let kept = |form: &forms::Form| !form.text.starts_with("lop3") || form.text.ends_with("3;");
    let some: Vec<forms::Form> = all.into_iter().filter(kept).collect();
    let altered = Altered { wrong: "add.rn.f64 %", refused: "prmt.b32 %" };
    let compared = instructions::compare(&altered, &some, None);
    let told: Vec<&str> = compared.told.lines().collect();
    assert_eq!(told.len(), 3, "{}", compared.told);
    assert!(told[0].starts_with("add.rn.f64 %d0, %d1, %d2; differs on 1 of "), "{}", told[0]);
    assert!(told[1].starts_with("  of 0x") && told[1].ends_with("by the device"), "{}", told[1]);
    assert_eq!(told[2], "prmt.b32 %r0, %r1, %r2, %r3; is refused: no such instruction");
    assert_eq!((compared.same, compared.other, compared.left), (some.len() - 2, 2, 0));
    assert!(compared.rows > 16_000 * (some.len() - 1), "{}", compared.rows);
}

/// The programs of the memory model as a device runs them, by the interpreter.
#[test]
fn programs_for_a_device_give_their_outcomes_and_others_are_told() {
    let extent = Extent { blocks: 8, bytes: 4096 };
    let mut skipped = 0;
    for mut program in programs::all() {
        let (line, wrong) = check(&Interpreter(3), &program, extent, Duration::ZERO);
        assert!(!wrong, "{line}");
        if line.contains("skipped") {
            skipped += 1;
            continue;
        }
        let first = line.lines().nth(1).expect("an outcome").trim();
        let outcome = &first[..first.rfind(':').expect("a number")];
        assert!(program.outcomes.remove(outcome), "{line}");
        let (line, wrong) = check(&Interpreter(3), &program, extent, Duration::ZERO);
        assert!(wrong && line.contains("AGAINST THE MODEL"), "{line}");
    }
    assert_eq!(skipped, 27);
}
