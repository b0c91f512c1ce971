"""Tests of what suites and measurements read: outputs of programs, records of ranks, and options."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import subprocess
import unittest

import driver
import foreign
import main
import peers
import programs
import suite
from commands import CORES, ROOT, Failure, brief, output, within
from figures import Figures, Table, launched, micros, told
from mpis import Mpi
from preload import Preload, Report
from suite import FAILED, PASSED, Field, Results, Suite

RESULTS = ["skipped", "passed", "failed"]


class Outputs(unittest.TestCase):
    def test_a_command_that_fails_or_hangs_says_why_and_what_it_printed(self) -> None:
        self.assertEqual(within(["sh", "-c", "echo out; echo err >&2"], 9), "err\n\nout\n")
        for line, why in (("echo lost; exit 7", "ended with 7\nlost"), ("echo lost; exec sleep 60", "gave up.*\nlost")):
            with self.assertRaisesRegex(Failure, why):
                within(["sh", "-c", line], 3 if "sleep" in line else 9)
        self.assertEqual(brief("gave up\n\n  =====\nof thirst\nlong ago"), "gave up: of thirst")
        self.assertRaises(Failure, output, "false")

    def test_a_drivers_lines_are_read_if_each_size_is_there_once(self) -> None:
        text = "a launcher warns\n1024 1.5 0\n\n32768 13.25 2\nand says 1 more\n"
        self.assertEqual(driver.read(text, [1024, 32768]), [(1.5, False), (13.25, True)])
        for wrong in ("1024 1.5 0\n", "32768 1 0\n1024 1 0\n", "1024 1 0\n" * 2 + "32768 1 0\n", "1024 nothing 0\n"):
            self.assertIsNone(driver.read(wrong, [1024, 32768]), wrong)

    def test_intels_rows_are_times_of_the_slowest_rank(self) -> None:
        text = "# #processes = 2\n #bytes t_min[usec]\n 4 1000  0.55  0.58  0.57\n 1000  0.25  0.31  0.28\n"
        self.assertEqual(foreign.imb_times(text), [(4, 0.58), (None, 0.31)])
        differs = f"roundelay: element 3 differs\n{text}"
        told = [foreign.imb_wrong(*of) for of in ((text, 2, "verify"), (text, 3, "on"), (differs, 2, "on"))]
        self.assertEqual(told, ["", "2 of 3 sizes were timed", ""])
        self.assertEqual(foreign.imb_wrong(differs, 2, "verify"), "element 3 differs")

    def test_counts_of_all_collectives_are_added_and_the_rest_is_told(self) -> None:
        text = (
            "of the program\n"
            "roundelay: Allreduce 12 calls, 10 taken, 2 passed on (type: 2), algorithm Ring, time 3 us\n"
            "[1,0]<stderr>: roundelay: Bcast 5 calls, 5 taken, 0 passed on\n"
            "roundelay: on 2 ranks, MeshGather: tiles of 32 KiB (211.1 us; the usual way 211.1 us)\n"
            "roundelay: MPI_Allreduce, rank 3: element 64 of 100 is 00 here and ff by MPI\n"
        )
        report = Report().read(text)
        self.assertEqual((report.taken, report.passed), (15, 2))
        self.assertEqual(report.remarks, ["MPI_Allreduce, rank 3: element 64 of 100 is 00 here and ff by MPI"])

    def test_lines_of_mpichs_list_are_read(self) -> None:
        line = "allred 4 arg=-count=10 env=A=B timeLimit=300"
        self.assertEqual(foreign.listed(line), (line, "allred", "4", ["-count=10"], {"A": "B"}))
        for none in ("# allred 4", "", "uoplong 16 mem=1.4"):
            self.assertIsNone(foreign.listed(none), none)

    def test_a_report_of_bench_gives_the_median_of_the_form_and_the_limit(self) -> None:
        row = {"algo": "Mesh", "out_of_place": {"median": 1.25, "nwrong": 3}, "in_place": {"median": 0.75, "nwrong": 0}}
        report = {"results": [row], "refused": ["no such count"], "config": {"build": "release"}}
        report["limit"] = {"sizes": [{"size": 1024, "median": 0.5}]}
        said = json.dumps(report) + "\nand more"
        self.assertEqual(peers.read(said, "in_place"), [("Mesh", (0.75, False)), ("limit", (0.5, False))])
        self.assertEqual(peers.read(said, "out_of_place")[0], ("Mesh", (1.25, True)))
        wrong = [({"results": []}, "no such count"), ({"config": {"build": "dev"}}, "no release build")]
        for change, why in [*wrong, ({"results": [{"algo": "Mesh", "in_place": None}]}, "no report")]:
            with self.assertRaisesRegex(Failure, why):
                peers.read(json.dumps({**report, **change}), "in_place")


class Listed(Suite):
    """Cases with letters for what fails: `a` always, `o` only with the library, `n` now and then without it."""

    def __init__(self, own: bool, cases: str) -> None:
        self.field = Field.__new__(Field)
        self.field.args = argparse.Namespace(seconds=None, markdown=None, ranks=[2])
        mpi = Mpi.__new__(Mpi)
        mpi.name, mpi.yields = "an MPI", True
        self.field.mpis, self.field.modes, self.own, self.cases, self.launches = [mpi], ["without", "on"], own, cases, 0

    def programs(self, mpi: Mpi) -> list[str]:
        return ["listed", "in no mode"]

    def run(self, mpi: Mpi, program: str, ranks: str, mode: str, results: Results) -> None:
        if program != "listed":
            return
        self.launches += 1
        for case in self.cases:
            fails = case == "a" or (case == "o" and mode == "on") or (case == "n" and self.launches > 1)
            results.add(case, FAILED if fails else PASSED, "lost" if fails else "")


class Runner(unittest.TestCase):
    def rows(self, own: bool, cases: str) -> tuple[list[list[str]], list[str], int]:
        with contextlib.redirect_stdout(io.StringIO()):
            table, failures = suite.run(Listed(own, cases))
        return [row[1:9] for row in table.rows[1:]], table.notes, failures

    def test_a_case_that_fails_without_the_library_too_is_no_failure_but_of_our_own_programs(self) -> None:
        rows, notes, failures = self.rows(False, "paon")
        self.assertEqual(rows[0], ["listed", "2", "without", "4", "3", "0", "1", "0"])
        self.assertEqual(rows[1], ["listed", "2", "on", "4", "1", "0", "2", "1"])
        self.assertEqual((len(rows), failures), (2, 1))
        self.assertIn("an MPI, listed, 2, on, FAILED: o: lost", notes)
        self.assertIn("an MPI, listed, 2, on, fails without it, too: n: lost", notes)
        rows, _, failures = self.rows(True, "pa")
        self.assertEqual(([row[7] for row in rows], failures), (["1", "1"], 2))


class Libraries(unittest.TestCase):
    def test_ranks_have_variables_that_their_launcher_has_not(self) -> None:
        for name, words in (("openmpi", "-x LD_PRELOAD=a.so -n 3"), ("mpich", "-genv LD_PRELOAD a.so -n 3")):
            mpi = Mpi.__new__(Mpi)
            mpi.is_open_mpi = name == "openmpi"
            self.assertEqual(" ".join(mpi.ranks(3, {"LD_PRELOAD": "a.so"})), words)

    def test_libraries_are_named_by_what_their_launchers_say(self) -> None:
        for name, said, title in (
            ("impi", "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626", "Intel MPI 2021.18.1"),
            ("openmpi", "mpiexec (Open MPI) 5.0.11\n\nReport bugs to their list\n", "Open MPI 5.0.11"),
            ("openmpi4", "mpiexec (OpenRTE) 4.1.4\n", "Open MPI 4.1.4"),
            ("mpich", "HYDRA build details:\n    Version:           5.0.2\n", "MPICH 5.0.2"),
        ):
            self.assertEqual(Mpi.title_of(name, said), title)
        self.assertRaises(Failure, Mpi.title_of, "openmpi", "no version")

    def test_only_a_mode_that_loads_the_library_has_variables(self) -> None:
        preload = Preload(["on"], foreign.ROOT / "Cargo.toml")
        self.assertEqual([len(preload.variables(mode, True)) for mode in ("without", "verify")], [0, 4])
        self.assertEqual(len(preload.variables("verify", False)), 2)


class Records(unittest.TestCase):
    def read(self, *texts: str) -> tuple[str, str, bool]:
        results = Results()
        last = foreign.read([text.replace("; ", "\n") for text in texts], results)
        told = [f"{case} {RESULTS[result]} {why}".strip() for case, (result, why) in results.cases.items()]
        return ", ".join(told), *last

    def test_of_all_ranks_the_worst_counts_and_parts_that_fail_are_no_end(self) -> None:
        found = self.read(
            "begin a; passed; end; begin b; skipped no type; end; begin c; passed; end; done",
            "begin a; passed; end; begin b; skipped; end; begin c; failed 3; failed 4; end; done",
        )
        self.assertEqual(found, ("a passed, b skipped, c failed rank 1: 4", "", True))
        self.assertEqual(self.read(), ("", "", False))

    def test_a_case_that_does_not_end_has_failed_and_the_suite_goes_on_after_the_last_of_them(self) -> None:
        first, second = "begin a; passed; end; begin b", "begin a; passed; end; begin b; passed; end; begin c"
        told, unfinished, complete = self.read(first, second)
        lost = "it did not end"
        self.assertEqual(told, f"a passed, b failed rank 0: {lost}, c failed rank 1: {lost}")
        self.assertEqual((unfinished, complete), ("c", False))


class Tables(unittest.TestCase):
    def figures(self) -> Figures:
        """Open MPI is faster, and one launch of it was slow."""
        figures = Figures()
        for column, of, times in (
            ("MPI", "Intel MPI 2021.18.1", [40, 44, 42]),
            ("MPI", "Open MPI 5.0.11", [39, 30, 36]),
            ("one process", "RingAllReduce", [24]),
            ("processes", "", [18, 17, 20, 18]),
        ):
            for time in times:
                turn = [(float(time), False)]
                figures.measure(("AllReduce", "4"), 1, [lambda: launched(column, of, [32 << 10], lambda: turn)])
        return figures

    def table(self, figures: Figures) -> str:
        columns = ["MPI", "one process", "processes", "threads"]
        return figures.table(["op", "ranks"], columns, [("MPI", "processes"), ("MPI", "threads")]).text()

    def test_the_least_median_counts_and_what_was_not_measured_has_no_column(self) -> None:
        expected = """\
| op        | ranks | size  | MPI                       | one process        | processes        | MPI / processes |
|-----------|-------|-------|---------------------------|--------------------|------------------|-----------------|
| AllReduce | 4     | 32 KB | 36.0 [30.0-39.0] Open MPI | 24.0 RingAllReduce | 18.0 [17.0-20.0] | 2.00            |
"""
        self.assertEqual(self.table(self.figures()), expected)
        self.assertEqual(self.figures().pairs("MPI", "processes"), [("AllReduce, 4, 32 KB", 36, 18)])

    def test_wrong_results_and_failures_are_no_times_and_are_told(self) -> None:
        def lost() -> list[tuple[float, bool]]:
            raise Failure("gave up\n\n  =====\nof thirst\nlong ago")

        figures, size = self.figures(), [32 << 10]
        turns = [lambda: launched("MPI", "Open MPI 5.0.11", size, lambda: [(1.0, True)])]
        turns.append(lambda: launched("MPI", "Open MPI 5.0.11", size, lost))
        with contextlib.redirect_stdout(io.StringIO()):
            figures.measure(("AllReduce", "4"), 1, turns)
        place = "AllReduce, 4, MPI Open MPI 5.0.11, 32 KB"
        self.assertEqual(figures.troubles(), [f"{place}: results are wrong", f"{place}: gave up: of thirst"])
        self.assertIn("| 42.0 [40.0-44.0] Intel MPI |", self.table(figures))
        self.assertTrue(self.table(figures).endswith(f"\n* {figures.troubles()[1]}\n"))
        self.assertRaises(Failure, figures.verdict)

    def test_columns_are_as_wide_as_what_they_hold(self) -> None:
        table = Table("MPI", "ranks")
        table.add("openmpi", 2)
        self.assertEqual(table.text(), "| MPI     | ranks |\n|---------|-------|\n| openmpi | 2     |\n")
        self.assertEqual(list(map(micros, [0.5, 9.994, 9.996, 99.96, 1234.6])), ["0.50", "9.99", "10.0", "100", "1235"])
        self.assertEqual(list(map(told, [3, 1 << 10, 1 << 20, 1 << 30])), ["3 B", "1 KB", "1 MB", "1024 MB"])


class Options(unittest.TestCase):
    def test_options_replace_what_is_not_given(self) -> None:
        args = main.parser("mpi").parse_args("mpi4py --mpi mpich,impi --ranks 1,2 --mode verify --sizes 4,1K".split())
        self.assertEqual((args.job, args.mpi, args.ranks), ("mpi4py", ["mpich", "impi"], [1, 2]))
        self.assertEqual((args.mode, args.sizes, args.hosts), (["verify"], [4, 1024], [2, 4]))
        args = main.parser("peers").parse_args("--quick --sizes 1K,3,2M --ours threads".split())
        self.assertEqual((args.launches, args.sizes), (1, [1024, 3, 2 << 20]))
        self.assertEqual((args.ours, args.nranks, args.processes), (["threads"], [2, 4, 8], False))

    def test_what_is_no_job_or_option_is_refused_with_the_usage(self) -> None:
        for line in (
            *("mpi", "mpi mpi5py", "mpi imb --ranks", "mpi imb --ranks 0", "mpi imb --mpi lam", "mpi bench --sizes 6"),
            *("mpi bench --ops AllReduce", "mpi hosts --hosts 1", "mpi mpi4py --mode maybe", "peers --sizes 1K,"),
            *("peers --sizes 0", "peers --ops AllToAll", "peers --nranks 1", "peers --launches 0", "peers --fast 1"),
        ):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit, msg=line):
                main.main(line.split()[0], line.split()[1:])
            self.assertIn(f"usage: cargo xtask {line.split()[0]}", said.getvalue())


class Namespaces(unittest.TestCase):
    def hosts(self, line: str) -> list[str]:
        """What a line of a shell prints on the first of two hosts; `$0` is the program that takes the place of ssh."""
        words = ["2", "1gbit", programs.NETWORK, "bash", "-c", line, "AGENT"]
        return output("bash", ROOT / "xtask/suites/hosts.sh", *words).split("\n")

    def test_hosts_have_names_memory_and_cores_of_their_own_and_leave_nothing_behind(self) -> None:
        if why := programs.missing():
            self.skipTest(why)
        address = f"{programs.NETWORK}.1"
        facts = "hostname; ls -A /dev/shm | wc -l; taskset -cp $$ | sed 's/.*: //'"
        listens = f"import socket; s = socket.create_server(('{address}', 7777)); s.settimeout(60); s.accept()"
        joined = f"(exec 3<> /dev/tcp/{address}/7777) 2> /dev/null && echo joined"
        other = shlex.quote(f"{facts}; for i in $(seq 300); do sleep .1; {joined} && break; done")
        found = self.hosts(f'{facts}; python3 -c "{listens}" & "$0" -x {programs.NETWORK}.2 {other}; wait "$!"')
        first, second = found[:3], found[3:6]
        self.assertEqual([*first[:2], *second[:2], *found[6:]], ["h1", "0", "h2", "0", "joined", ""])
        self.assertTrue(first[2] != second[2] or CORES < 2, found)
        words = ["2", "", programs.NETWORK, "sh", "-c", "ip netns identify; sleep 60"]
        hosts = ["bash", ROOT / "xtask/suites/hosts.sh", *words]
        with subprocess.Popen(hosts, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            name = child.stdout.readline().strip()
            self.assertIn(name, output("ip", "netns", "list"))
            child.terminate()
        self.assertEqual(child.returncode, 143)
        self.assertNotIn(name, output("ip", "netns", "list"))


if __name__ == "__main__":
    unittest.main()
