"""Runs scripts/check-layers on small source trees: each rule must accept allowed and name forbidden includes."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).parents[2] / "scripts" / "check-layers"
TABLE = subprocess.run([sys.executable, CHECK, "--table"], capture_output=True, text=True, check=True).stdout

# A tree that keeps all rules; each test adds or replaces one file.
CLEAN = {
    "CONTRIBUTING.md": f"# Contributing\n\n{TABLE}\nThe end.\n",
    "include/hpe/hpe.h": "#include <stddef.h>\n",
    "runtime/base/error.h": '#include <string>\n#include "hpe/hpe.h"\n',
    "runtime/os/futex.h": '#include "runtime/base/error.h"\n',
    "runtime/device/device.h": '#include "runtime/base/error.h"\n',
    "runtime/device/open.cpp": '#include "runtime/device/soft/owner/set.h"\n',
    "runtime/device/CMakeLists.txt": "hpe_layer(device SOURCES open.cpp soft/shared/ring.cpp SEES base os)\n",
    "runtime/device/soft/shared/ring.h": '#include "runtime/device/device.h"\n#include "runtime/os/futex.h"\n',
    "runtime/device/soft/owner/set.h": '#include "runtime/device/soft/shared/ring.h"\n',
    "runtime/device/soft/softd/main.cpp": '#include "runtime/device/soft/shared/ring.h"\n',
    "runtime/memory/uvas.h": '#include "runtime/base/error.h"\n#include "runtime/os/futex.h"\n',
    "runtime/coherence/state.h": '#include "runtime/base/error.h"\n',
    "runtime/transfer/engine.h": '#include "runtime/device/device.h"\n#include "runtime/memory/uvas.h"\n',
    "runtime/fault/handler.h": '#include "runtime/transfer/engine.h"\n#include "runtime/coherence/state.h"\n',
    "runtime/trace/trace.h": '#include "runtime/base/error.h"\n',
    "runtime/work/device_work.h": '#include "runtime/transfer/engine.h"\n#include "runtime/coherence/state.h"\n',
    "runtime/core/memory/allocator.h": '#include "runtime/work/device_work.h"\n',
    "runtime/core/operations/copier.h": '#include "runtime/core/memory/allocator.h"\n',
    "runtime/core/sharing/exports.h": '#include "runtime/core/operations/copier.h"\n',
    "runtime/core/runtime.h": '#include "runtime/core/sharing/exports.h"\n',
    "runtime/core/api/launch.cpp": '#include "runtime/core/runtime.h"\n',
    "runtime/memory/CMakeLists.txt": "hpe_layer(memory SOURCES uvas.cpp SEES base os LIBRARIES fmt::fmt)\n",
    "interpose/mpi/send.cpp": '#include <mpi.h>\n#include "runtime/core/operations/copier.h"\n',
    "kernels/host/scale.cpp": '#include "hpe/hpe.h"\n',
    "apps/rtm/rtm_main.h": '#include "hpe/hpe.h"\n',
    "apps/hpe/main.cpp": '#include "apps/rtm/rtm_main.h"\n',
    "tests/memory/uvas_test.cpp": '#include "runtime/core/runtime.h"\n#include "kernels/host/scale.cpp"\n',
}


def write_tree(root, files):
    for name, text in files.items():
        path = Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class LayersTest(unittest.TestCase):
    def check(self, **changed):
        """Runs the check on the clean tree with these files changed; returns its exit status and its lines."""
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, {**CLEAN, **changed})
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
        self.refuses("runtime/memory/uvas.h", '#include "runtime/coherence/state.h"\n', "runtime/coherence")
        self.refuses("runtime/fault/handler.h", '#include "runtime/core/runtime.h"\n', "runtime/core")
        self.refuses("runtime/work/device_work.h", '#include "runtime/core/memory/allocator.h"\n', "runtime/core/memory")
        self.refuses("runtime/core/memory/allocator.h", '#include "runtime/core/operations/copier.h"\n', "runtime/core/operations")
        self.refuses("runtime/core/operations/copier.h", '#include "runtime/core/sharing/exports.h"\n', "runtime/core/sharing")
        self.refuses("runtime/core/sharing/exports.h", '#include "runtime/core/runtime.h"\n', "belongs to runtime/core;")
        self.refuses("runtime/core/runtime.h", '#include "runtime/core/api/launch.cpp"\n', "runtime/core/api")
        self.refuses("runtime/core/api/launch.cpp", '#include "interpose/mpi/send.cpp"\n', "interpose")

    def test_sideways_includes(self):
        self.refuses("runtime/device/device.h", '#include "runtime/os/futex.h"\n', "runtime/os")
        self.refuses("runtime/device/device.h", '#include "runtime/device/soft/shared/ring.h"\n', "runtime/device/soft")
        self.refuses("runtime/device/soft/owner/set.h", '#include "runtime/device/soft/softd/main.cpp"\n', "runtime/device/soft/softd")
        self.refuses("runtime/device/soft/softd/main.cpp", '#include "runtime/device/soft/owner/set.h"\n', "runtime/device/soft/owner")
        self.refuses("runtime/device/soft/shared/ring.h", '#include "runtime/device/soft/owner/set.h"\n', "runtime/device/soft/owner")
        self.refuses("runtime/memory/uvas.h", '#include "runtime/device/device.h"\n', "runtime/device")
        self.refuses("runtime/os/futex.h", '#include "runtime/device/device.h"\n', "runtime/device")
        self.refuses("runtime/transfer/engine.h", '#include "runtime/coherence/state.h"\n', "runtime/coherence")
        self.refuses("runtime/trace/trace.h", '#include "runtime/device/device.h"\n', "runtime/device")
        self.refuses("apps/rtm/rtm_main.h", '#include "apps/hpe/main.cpp"\n', "apps/hpe")

    def test_coherence_sees_base_only(self):
        for header in ("os/futex.h", "device/device.h", "device/soft/shared/ring.h", "memory/uvas.h"):
            self.refuses("runtime/coherence/state.h", f'#include "runtime/{header}"\n', "runtime/coherence sees runtime/base, include")

    def test_programs_do_not_see_the_runtime(self):
        for file in ("apps/rtm/rtm_main.h", "kernels/host/scale.cpp"):
            self.refuses(file, '#include "runtime/base/error.h"\n', "belongs to runtime/base")
        self.refuses("apps/hpe/main.cpp", '#include "runtime/device/device.h"\n', "belongs to runtime/device")

    def test_angle_brackets_and_spaces_hide_nothing(self):
        self.refuses("runtime/base/error.h", "\n\n  #  include <runtime/os/futex.h>\n", "runtime/os", line=3)

    def test_libraries_may_be_called_like_our_files(self):
        status, lines = self.check(**{"runtime/device/soft/owner/spawn.h": "#include <spawn.h>\n"})
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

    def test_a_folder_with_too_many_files(self):
        files = {f"kernels/host/kernel_{number}.cpp": "\n" for number in range(27)}
        status, lines = self.check(**files)
        self.assertEqual(status, 0, lines)
        status, lines = self.check(**files, **{"kernels/host/kernel_27.cpp": "\n"})
        self.assertEqual(status, 1, lines)
        self.assertEqual(lines[0], "kernels/host:1: 29 files; at most 28 are allowed")

    def test_a_file_with_too_many_lines(self):
        status, lines = self.check(**{"runtime/os/futex.h": "\n" * 600})
        self.assertEqual(status, 0, lines)
        self.refuses("runtime/os/futex.h", "\n" * 601, "601 lines; at most 600 are allowed")

    def test_headers_have_names_of_their_own(self):
        self.refuses("runtime/os/uvas.h", "", "runtime/memory/uvas.h has the same name")
        self.assertEqual(self.check(**{"tests/memory/uvas.h": ""})[0], 0)

    def test_types_have_names_of_their_own(self):
        first = {"runtime/os/futex.h": "struct one {\n};\n\nclass base : public one {\n};\nusing count = int;\n"}
        for second in ("class one final : public base {\n", "enum class one : int { a };\n", "struct HPE_API one {\n",
                       "template <class T> class one {\n", "template <class T>\nstruct base {\n", "using base = int;\n",
                       "struct count : one {\n"):
            status, lines = self.check(**first, **{"runtime/memory/uvas.h": second})
            self.assertEqual(status, 1, second)
            self.assertRegex(lines[0], r"^runtime/(os/futex|memory/uvas)\.h:\d: runtime/\S+:\d defines a type with the same name, \w+$")
        for second in ("struct one;\n", "struct one::inner {\n", "template <>\nstruct one<int> {\n", "class two {\n  struct one {};\n",
                       "// struct one {\n"):
            self.assertEqual(self.check(**first, **{"runtime/memory/uvas.h": second})[0], 0, second)
        self.assertEqual(self.check(**first, **{"tests/memory/uvas.h": "struct one {\n"})[0], 0)

    def test_short_files_are_counted_and_listed(self):
        status, lines = self.check(**{"runtime/os/futex.h": "\n" * 40})
        short = sum(name.startswith("runtime/") and not name.endswith("CMakeLists.txt") for name in CLEAN) - 1
        self.assertIn(f"{short} files of the runtime have fewer than 40 lines", lines[-1])

    def test_the_table_in_contributing(self):
        self.refuses("CONTRIBUTING.md", "# Contributing\n", "the table of folders is not that of scripts/check-layers")
        stale = f"# Contributing\n\n{TABLE.replace('address space', 'adress space')}\nThe end.\n"
        self.refuses("CONTRIBUTING.md", stale, "--fix puts it there", line=3)
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, {**CLEAN, "CONTRIBUTING.md": stale})
            self.assertEqual(subprocess.run([sys.executable, CHECK, "--fix", root], capture_output=True, check=False).returncode, 0)
            self.assertEqual(Path(root, "CONTRIBUTING.md").read_text(), CLEAN["CONTRIBUTING.md"])


if __name__ == "__main__":
    unittest.main()
