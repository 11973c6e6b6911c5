"""Runs scripts/check-layers on small source trees: each rule must let through what it allows and name what it forbids."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).parents[2] / "scripts" / "check-layers"

# A tree that keeps all rules; each test adds or replaces one file.
CLEAN = {
    "include/hpe/hpe.h": "#include <stddef.h>\n",
    "runtime/base/error.h": '#include <string>\n#include "hpe/hpe.h"\n',
    "runtime/os/futex.h": '#include "runtime/base/error.h"\n',
    "runtime/device/device.h": '#include "runtime/base/error.h"\n',
    "runtime/device/open.cpp": '#include "runtime/device/soft/ring.h"\n',
    "runtime/device/CMakeLists.txt": "hpe_layer(device SOURCES open.cpp soft/ring.cpp SEES base os)\n",
    "runtime/device/soft/ring.h": '#include "runtime/device/device.h"\n#include "runtime/os/futex.h"\n',
    "runtime/memory/region.h": '#include "runtime/device/device.h"\n#include "runtime/os/futex.h"\n',
    "runtime/coherence/state.h": '#include "runtime/memory/region.h"\n',
    "runtime/transfer/engine.h": '#include "runtime/device/device.h"\n',
    "runtime/fault/handler.h": '#include "runtime/transfer/engine.h"\n#include "runtime/coherence/state.h"\n',
    "runtime/trace/trace.h": '#include "runtime/base/error.h"\n',
    "runtime/core/core.h": '#include "runtime/fault/handler.h"\n#include "runtime/device/soft/ring.h"\n',
    "runtime/memory/CMakeLists.txt": "hpe_layer(memory SOURCES region.cpp SEES base os device LIBRARIES fmt::fmt)\n",
    "interpose/mpi/send.cpp": '#include <mpi.h>\n#include "runtime/core/core.h"\n',
    "kernels/host/scale.cpp": '#include "hpe/hpe.h"\n',
    "apps/rtm/rtm_main.h": '#include "hpe/hpe.h"\n',
    "apps/hpe/main.cpp": '#include "apps/rtm/rtm_main.h"\n',
    "tests/memory/region_test.cpp": '#include "runtime/core/core.h"\n#include "kernels/host/scale.cpp"\n',
}


class LayersTest(unittest.TestCase):
    def check(self, **changed):
        """Runs the check on the clean tree with these files changed; gives its exit status and its lines."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **changed}.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout.splitlines()

    def refuses(self, file, text, *words, line=1):
        status, lines = self.check(**{file: text})
        self.assertEqual(status, 1, lines)
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(lines[0].startswith(f"{file}:{line}: "), lines)
        for word in words:
            self.assertIn(word, lines[0])

    def test_a_clean_tree_passes(self):
        status, lines = self.check()
        self.assertEqual(status, 0, lines)

    def test_an_empty_tree_is_not_clean(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(subprocess.run([sys.executable, CHECK, root], capture_output=True, check=False).returncode, 1)

    def test_upward_includes(self):
        self.refuses("include/hpe/hpe.h", '#include "runtime/base/error.h"\n', "include sees only itself")
        self.refuses("runtime/base/error.h", '#include "runtime/os/futex.h"\n', "belongs to runtime/os")
        self.refuses("runtime/memory/region.h", '#include "runtime/coherence/state.h"\n', "runtime/coherence")
        self.refuses("runtime/fault/handler.h", '#include "runtime/core/core.h"\n', "runtime/core")
        self.refuses("runtime/core/core.h", '#include "interpose/mpi/send.cpp"\n', "interpose")

    def test_sideways_includes(self):
        self.refuses("runtime/device/device.h", '#include "runtime/os/futex.h"\n', "runtime/os")
        self.refuses("runtime/device/device.h", '#include "runtime/device/soft/ring.h"\n', "runtime/device/soft")
        self.refuses("runtime/memory/region.h", '#include "runtime/device/soft/ring.h"\n', "runtime/device/soft")
        self.refuses("runtime/os/futex.h", '#include "runtime/device/device.h"\n', "runtime/device")
        self.refuses("runtime/transfer/engine.h", '#include "runtime/coherence/state.h"\n', "runtime/coherence")
        self.refuses("runtime/trace/trace.h", '#include "runtime/os/futex.h"\n', "runtime/os")
        self.refuses("apps/rtm/rtm_main.h", '#include "apps/hpe/main.cpp"\n', "apps/hpe")

    def test_coherence_sees_neither_os_nor_device(self):
        for header in ("runtime/os/futex.h", "runtime/device/device.h", "runtime/device/soft/ring.h"):
            self.refuses("runtime/coherence/state.h", f'#include "{header}"\n', "runtime/coherence sees runtime/base")

    def test_programs_do_not_see_the_runtime(self):
        for file in ("apps/rtm/rtm_main.h", "apps/hpe/main.cpp", "kernels/host/scale.cpp"):
            self.refuses(file, '#include "runtime/base/error.h"\n', "belongs to runtime/base")

    def test_angle_brackets_and_spaces_hide_nothing(self):
        self.refuses("runtime/base/error.h", "\n\n  #  include <runtime/os/futex.h>\n", "runtime/os", line=3)

    def test_libraries_may_be_called_like_our_files(self):
        status, lines = self.check(**{"runtime/device/soft/spawn.h": "#include <spawn.h>\n"})
        self.assertEqual(status, 0, lines)

    def test_other_spellings(self):
        self.refuses("runtime/coherence/state.h", '#include "../os/futex.h"\n', "runtime/os")
        self.refuses("runtime/os/futex.h", '#include "include/hpe/hpe.h"\n', 'must be spelled "hpe/hpe.h"')
        self.refuses("runtime/os/futex.h", '#include "png.h"\n', "write <png.h>")

    def test_a_new_folder_needs_a_row(self):
        self.refuses("runtime/extra/thing.h", "\n", "no row")

    def test_targets(self):
        self.refuses("runtime/memory/CMakeLists.txt", "\nhpe_layer(memory SOURCES a.cpp SEES base coherence)\n",
                     "hpe-memory links hpe-coherence", line=2)
        self.refuses("runtime/extra/CMakeLists.txt", "hpe_layer(extra SOURCES a.cpp)\n", "no row")


if __name__ == "__main__":
    unittest.main()
