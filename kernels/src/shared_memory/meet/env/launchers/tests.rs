use super::*;

fn read(vars: &[(&str, &str)]) -> Result<Membership, Error> {
    place(&Sources {
        var: &|name| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        },
        starter: &|mark| match mark {
            "PMI_RANK" => Ok("17 started at 4".to_owned()),
            _ => Err("no parent".to_owned()),
        },
    })
}

fn refused(vars: &[(&str, &str)], words: &[&str]) {
    let text = read(vars).expect_err("nothing that makes sense").to_string();
    assert!(text.ends_with("[E0427]"), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` in: {text}");
    }
}

/// Checks the rank and the number of ranks, and that each change of a variable in `job` gives another world.
fn is(vars: &[(&str, &str)], (rank, nranks): (u32, u32), job: &[&str]) {
    let place = read(vars).expect("a launcher's variables");
    assert_eq!((place.rank, place.nranks), (rank, nranks));
    place.id.check().expect("an id of this host");
    for name in job {
        let others: Vec<_> = vars
            .iter()
            .map(|&(known, value)| (known, if known == *name { "77" } else { value }))
            .collect();
        assert_ne!(others, vars, "{name} is there");
        assert_ne!(read(&others).expect("the same otherwise").id, place.id, "{name}");
    }
}

const TORCH: [(&str, &str); 8] = [
    ("RANK", "1"),
    ("WORLD_SIZE", "4"),
    ("LOCAL_RANK", "1"),
    ("LOCAL_WORLD_SIZE", "4"),
    ("MASTER_ADDR", "127.0.0.1"),
    ("MASTER_PORT", "29500"),
    ("TORCHELASTIC_RUN_ID", "none"),
    ("TORCHELASTIC_RESTART_COUNT", "0"),
];

#[test]
fn each_launcher_is_read() {
    let hex = UniqueId::new().expect("an id").to_hex();
    let own = [("ROUNDELAY_RANK", "2"), ("ROUNDELAY_NRANKS", "3"), ("ROUNDELAY_ID", &*hex)];
    is(&own, (2, 3), &[]);
    assert_eq!(read(&own).expect("an id").id.to_hex(), hex);
    // Roundelay's own variables come first.
    is(&[&own[..], &TORCH].concat(), (2, 3), &[]);
    let hand = [("ROUNDELAY_RANK", "0"), ("ROUNDELAY_NRANKS", "1"), ("ROUNDELAY_JOB", "a b")];
    is(&hand, (0, 1), &["ROUNDELAY_JOB"]);
    let job = ["MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"];
    is(&TORCH, (1, 4), &job);
    is(&[TORCH[0], TORCH[1], TORCH[4], TORCH[5]], (1, 4), &job[..2]);
    let ompi = [
        ("OMPI_COMM_WORLD_RANK", "7"),
        ("OMPI_COMM_WORLD_SIZE", "8"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "7"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "8"),
        ("PMIX_NAMESPACE", "prterun-host-12@1"),
    ];
    is(&ompi, (7, 8), &["PMIX_NAMESPACE"]);
    let pmi = [
        ("PMI_RANK", "0"),
        ("PMI_SIZE", "2"),
        ("MPI_LOCALRANKID", "0"),
        ("MPI_LOCALNRANKS", "2"),
        ("PMI_FD", "9"),
    ];
    is(&pmi, (0, 2), &[]);
    let slurm = [
        ("SLURM_PROCID", "3"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_LOCALID", "3"),
        ("SLURM_JOB_ID", "123"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_NODES", "1"),
    ];
    is(&slurm, (3, 4), &["SLURM_JOB_ID", "SLURM_STEP_ID"]);
}

#[test]
fn ranks_on_several_hosts_are_refused() {
    let mut two = TORCH;
    two[3].1 = "2";
    refused(&two, &["4 ranks (WORLD_SIZE)", "2 of them", "LOCAL_WORLD_SIZE", "several hosts"]);
    let slurm = [
        ("SLURM_PROCID", "3"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_JOB_ID", "123"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_NODES", "2"),
    ];
    refused(&slurm, &["on 2 hosts (SLURM_STEP_NUM_NODES)"]);
}

#[test]
fn what_is_missing_is_named() {
    refused(
        &[("RANK", "0"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("ROUNDELAY_JOB", "a")],
        &[
            "`roundelay launch` (ROUNDELAY_RANK, ROUNDELAY_NRANKS, ROUNDELAY_ID missing)",
            "torchrun (RANK found, WORLD_SIZE, MASTER_ADDR, MASTER_PORT missing)",
            "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMIX_NAMESPACE missing)",
            "MPICH or Intel MPI (PMI_RANK, PMI_SIZE missing)",
            "Slurm (SLURM_PROCID, SLURM_NTASKS found, SLURM_JOB_ID, SLURM_STEP_ID missing)",
        ],
    );
    let set = ("ROUNDELAY_RANK", "0");
    refused(&[set], &["ROUNDELAY_RANK found", "ROUNDELAY_NRANKS, ROUNDELAY_ID missing"]);
    refused(&[set, ("ROUNDELAY_NRANKS", "2")], &["neither ROUNDELAY_ID nor ROUNDELAY_JOB"]);
}

#[test]
fn values_that_make_no_sense_are_named() {
    let own = |rank, nranks| {
        [("ROUNDELAY_RANK", rank), ("ROUNDELAY_NRANKS", nranks), ("ROUNDELAY_JOB", "a")]
    };
    refused(&own("x", "2"), &["ROUNDELAY_RANK is `x`, which is no number"]);
    refused(&own("-1", "2"), &["ROUNDELAY_RANK is `-1`"]);
    refused(&own("0", ""), &["ROUNDELAY_NRANKS is ``"]);
    refused(&own("0", "4294967296"), &["ROUNDELAY_NRANKS is `4294967296`"]);
    refused(&own("0", "0"), &["ROUNDELAY_NRANKS is 0; the number of ranks must be in 1..="]);
    refused(&own("0", "65537"), &["1..=65536"]);
    refused(&own("2", "2"), &["ROUNDELAY_RANK is 2 and ROUNDELAY_NRANKS is 2", "the last is 1"]);
    let mut odd = own("0", "2");
    odd[2] = ("ROUNDELAY_ID", "abc");
    refused(&odd, &["ROUNDELAY_ID cannot be read", "3 characters"]);
    let mut bad = TORCH;
    bad[3].1 = "many";
    refused(&bad, &["LOCAL_WORLD_SIZE is `many`"]);
}
