#!/usr/bin/env python3
"""Checks that every entry of the driver that queues work has a hook: compares hooks.def and the lists that
interpose/gpu/generate.py generates with cuda.h.

    hooks_test.py cuda.h hooks.def <folder of the generated lists>
"""

import re
import sys
import unittest
from pathlib import Path

HEADER, HOOKS, GENERATED = map(Path, sys.argv[1:4])

# Entries that take a stream and need no hook.
NO_WORK = {
    "the call queries or configures a stream": """cuStreamGetAttribute cuStreamSetAttribute cuStreamCopyAttributes
        cuStreamGetCtx cuStreamGetDevice cuStreamGetFlags cuStreamGetId cuStreamGetPriority
        cuStreamGetGreenCtx""",
    "the hooks see captured work when the graph is launched": """cuStreamGetCaptureInfo cuStreamIsCapturing
        cuStreamUpdateCaptureDependencies""",
    "the call only tells other APIs": "cuSignalExternalSemaphoresAsync",
    "memory is new, or changes its place but not its contents": """cuMemMapArrayAsync cuMemPrefetchAsync cuMemPrefetchBatchAsync cuMemDiscardBatchAsync cuMemDiscardAndPrefetchBatchAsync
        cuStreamAttachMemAsync""",
    "the hooks see an uploaded graph when the graph is launched": "cuGraphUpload",
    "memory of another API: hpe records it when the program asks for its address (cuGraphicsResourceGetMappedPointer)": "cuGraphicsMapResources cuGraphicsUnmapResources",
}
SUFFIX = re.compile(r"(_v\d+)?(_ptds|_ptsz)?$")


def base_of(name):
    return SUFFIX.sub("", name)


def prototypes(text):
    """Returns (name, parameters) of each entry."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.findall(r"\bCUresult\s+CUDAAPI\s+(\w+)\s*\(([^;]*?)\)\s*;", text)


class Hooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hooks = HOOKS.read_text() + (GENERATED / "hooks/hook_twins.def").read_text()
        cls.hooks = set(re.findall(r"^HPE_HOOK\((\w+),", hooks, re.MULTILINE))
        entries = (GENERATED / "shim/driver_entries.def").read_text()
        cls.entries = set(re.findall(r"^HPE_DRIVER_ENTRY\((\w+)\)", entries, re.MULTILINE))
        cls.with_stream = {base_of(name) for name, parameters in prototypes(HEADER.read_text())
                           if re.search(r"\bCUstream\b(?!\s*\*)", parameters)}
        cls.no_work = {name for names in NO_WORK.values() for name in names.split()}

    def test_the_files_were_understood(self):
        self.assertGreater(len(self.hooks), 100)
        self.assertGreater(len(self.entries), 600)
        self.assertGreater(len(self.with_stream), 60)

    def test_hooks_are_entries(self):
        self.assertEqual(self.hooks - self.entries, set())

    def test_each_form_of_a_hooked_entry_is_hooked(self):
        """Programs with one default stream for each thread call another form of the entry."""
        twins = {hook + suffix for hook in self.hooks for suffix in ("_ptds", "_ptsz")} & self.entries
        self.assertEqual(twins - self.hooks, set())
        self.assertEqual({hook for hook in self.hooks if re.search("_pt[ds][sz]$", hook) and hook[:-5] not in self.hooks}, set())

    def test_each_entry_with_a_stream_is_hooked_or_queues_no_work(self):
        hooked = {base_of(hook) for hook in self.hooks}
        self.assertEqual(self.with_stream - hooked - self.no_work, set())
        self.assertEqual(hooked & self.no_work, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
