"""``roundelay ps`` beside ranks of torch, of which one does not make a call."""

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

#: The lines of the program from which the calls of its ranks come, the last one first.
LINES = (21, 18, 16, 14)

PROGRAM = """\
import os, sys, time
from datetime import timedelta

import torch
import torch.distributed as dist

import roundelay.torch

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group(
    "roundelay", init_method=f"file://{folder}/store", rank=rank, world_size=2, timeout=timedelta(seconds=50)
)
data = torch.ones(1000)
dist.all_reduce(data)
# The second call goes without torch's dispatcher.
dist.all_reduce(data)

dist.broadcast(torch.ones(10), 1, async_op=True).wait()
assert roundelay.torch.compiled() == (os.environ.get("ROUNDELAY_TORCH_EXTENSION") != "0")
time.sleep(50 * rank)
dist.all_gather_into_tensor(torch.empty(8), torch.ones(4))
"""


def seen(pids: "list[int]") -> Any:
    """What ``roundelay ps`` tells of the one world of two processes, once it tells why it hangs."""
    until = time.monotonic() + 40
    while True:
        words = [sys.executable, "-m", "roundelay", "ps", "--json", str(pids[0])]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        document = json.loads(done.stdout) if done.returncode == 0 else {"worlds": []}
        if document["worlds"] and document["worlds"][0]["told"]:
            (world,) = document["worlds"]
            assert [rank["pid"] for rank in world["ranks"]] == pids
            return world
        assert time.monotonic() < until, document
        time.sleep(0.05)


@pytest.mark.parametrize("sites, extension", [("0", "1"), ("1", "1"), ("1", "0")])
def test_a_call_that_is_missing_is_told_with_its_line(tmp_path, sites: str, extension: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    variables = {**os.environ, "ROUNDELAY_SITES": sites, "ROUNDELAY_TORCH_EXTENSION": extension}
    words = [sys.executable, str(path)]
    ranks = [subprocess.Popen([*words, str(rank), str(tmp_path)], env=variables) for rank in range(2)]
    try:
        world = seen([rank.pid for rank in ranks])
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    place = f", at program.py:{LINES[0]}" if sites == "1" else ""
    (told,) = world["told"]
    assert f"rank 1 (process {ranks[1].pid}) has not made call 4 (" in told, told
    assert f"{place}); rank 0 waits for it since" in told, told
    lines = [f"{path}:{line}" if sites == "1" else None for line in LINES]
    for rank, missing in enumerate((0, 1)):
        assert [call["site"] for call in world["ranks"][rank]["last_calls"]] == lines[missing:]
