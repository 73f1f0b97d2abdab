"""What users reported, as a small reproduction that is found and one with the fix that is not.

Those that a release shows are in tests/releases/test_findings.py too.
"""

from __future__ import annotations

import pytest

from specmap.testing import check_example, examples

EXAMPLES = {(e.rule.id, e.valid, e.name): e for e in examples()}
REPORTS = {
    "1, sglang PR 34378: DSA is not captured on HIP": ("SPM108", "only_cuda", "both_platforms"),
    "4, fastrl PR 4: plain decode beside verify": ("SPM107", "large_batches", "a_runner_for_each"),
    "6, sglang PR 31468: the largest length": ("SPM201", "largest", "stays_on_device"),
    "6, sglang PR 31468: a copy to the host": ("SPM201", "copy_to_host", "pinned_copy"),
    "6, sglang PR 31468: a gather by mask": ("SPM202", "mask_index", "where"),
    "7, sglang PR 12687: no int32 cast when eager": ("SPM305", "no_cast", "both_cast"),
    "8, sglang PR 16974: 1 token a request": ("SPM307", "requests_at_capture", "same_tokens"),
    "10, sglang issue 34942: verify is a prefill": ("SPM110", "prefill_first", "verify_first"),
    "12, TensorRT-LLM PR 17110: a host loop": ("SPM203", "tolist", "on_device"),
}


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_found_and_its_fix_is_not(report: str) -> None:
    rule, bad, good = REPORTS[report]
    assert EXAMPLES[rule, False, bad].expected
    check_example(EXAMPLES[rule, False, bad])
    check_example(EXAMPLES[rule, True, good])
