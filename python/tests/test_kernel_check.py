"""Kernels of others, by harnesses in dicts and files, and the plugin of pytest."""

import pytest
import roundelay

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 p_in, .param .u64 p_out, .param .u32 p_count)
{
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [p_in]; ld.param.u64 %rd2, [p_out]; ld.param.u32 %r2, [p_count];
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, %r2;
@%p1 bra $end;
mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
ld.global.u32 %r3, [%rd4]; st.global.u32 [%rd5], %r3;
$end:
ret;
}
"""


def harness(count):
    return {
        "module": {"m": {"ptx_text": PTX}},
        "memory": {
            "input": {"type": "u32", "len": "elements", "fill": {"value": "7*element+rank"}},
            "output": {"type": "u32", "len": "elements"},
        },
        "call": [
            {
                "kernel": "m.copy",
                "grid": 1,
                "block": 64,
                "args": [{"ptr": "input"}, {"ptr": "output"}, {"u32": count}],
            }
        ],
        "expect": {"values": "7*element+rank"},
        "run": {"calls": 1, "elements": [30], "seeds": 2},
    }


def test_a_dict_is_a_harness():
    verdict = roundelay.kernel_check(harness("elements"))
    assert verdict.ok, verdict
    assert verdict.words == ("clean",) and "no finding in 2 runs" in str(verdict)
    short = roundelay.kernel_check(harness("elements-2"), seeds=1)
    assert not short.ok and short.words == ("wrong",), short
    assert "was never written" in str(short)


def test_an_unknown_key_is_an_error():
    with pytest.raises(roundelay.CompileError) as wrong:
        roundelay.kernel_check({**harness(1), "expct": {}})
    assert wrong.value.code == "E0435" and "`expct` is no key" in str(wrong.value)


TOML = '''
[module.m]
ptx = "copy.ptx"
[memory]
input = { type = "u32", len = "elements", fill = { value = "7*element" } }
output = { type = "u32", len = "elements" }
[[call]]
kernel = "m.copy"
grid = 1
block = 64
args = [{ ptr = "input" }, { ptr = "output" }, { u32 = "elements" }]
[expect]
values = "7*element"
[run]
calls = 1
ranks = [1, 2]
elements = [5, 70]
seeds = 3
'''


def test_pytest_collects_harnesses(pytester):
    pytester.makefile(".ptx", copy=PTX)
    (pytester.path / "copy.kernel.toml").write_text(TOML)
    ran = pytester.runpytest("-p", "roundelay.pytest_plugin", "--kernel-seeds=1", "-v")
    ran.assert_outcomes(passed=2, failed=2)
    ran.stdout.fnmatch_lines(["*kernel[[]2-5[]] PASSED*", "*element 64 of rank 0's output was never written*"])
