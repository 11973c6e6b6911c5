"""Runs scripts/check-abi on changed headers: it must accept the described interface and name differences.

    abi_test.py LIBRARY   of the build
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = sys.argv.pop()


class AbiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        shutil.copytree(ROOT / "include", self.root / "include")
        (self.root / "interpose").mkdir()
        for name in ("hpe.map", "libhpe.abi.xml"):
            shutil.copy(ROOT / "interpose" / name, self.root / "interpose")

    def change(self, header, old, new):
        path = self.root / "include" / "hpe" / header
        text = path.read_text()
        self.assertEqual(text.count(old), 1)
        path.write_text(text.replace(old, new))

    def check(self, *options):
        done = subprocess.run([sys.executable, ROOT / "scripts" / "check-abi", "--root", self.root, "--library", LIBRARY, *options],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def expect_refusal(self, *words):
        status, output = self.check()
        self.assertEqual(status, 1, output)
        for word in words:
            self.assertIn(word, output)

    def test_what_is_described_passes(self):
        self.assertEqual(self.check()[0], 0, self.check()[1])

    def test_a_member_that_moves_is_named_with_the_remedy(self):
        self.change("hpe.h", "  uint64_t memory_total;", "  uint64_t speed;\n  uint64_t memory_total;")
        self.expect_refusal("hpeGetDeviceInfo", "speed", "--renew", "HPE_VERSION_MINOR")

    def test_an_argument_that_changes_is_named(self):
        self.change("hpe.h", "hpeStatus hpeSetDevice(int device)", "hpeStatus hpeSetDevice(int64_t device)")
        self.expect_refusal("hpeSetDevice", "int64_t")

    def test_a_constant_that_changes_is_named(self):
        self.change("hpe.h", "HPE_ADVISE_LAZY = 1", "HPE_ADVISE_LAZY = 9")
        self.expect_refusal("HPE_ADVISE_LAZY")

    def test_a_kernel_s_argument_that_changes_is_named(self):
        self.change("kernel.h", "  uint64_t begin;\n", "  uint32_t begin;\n")
        self.expect_refusal("hpeTiles")

    def test_a_member_that_is_appended_passes_once_it_is_described(self):
        self.change("hpe.h", "} hpePointerInfo;", "  size_t later;\n} hpePointerInfo;")
        self.expect_refusal("later")
        self.assertEqual(self.check("--renew")[0], 0)
        self.assertEqual(self.check()[0], 0)

    def test_a_function_without_a_definition_is_named(self):
        self.change("hpe.h", "HPE_API hpeStatus hpeInit(void);", "HPE_API hpeStatus hpeInit(void);\nHPE_API int hpeNew(void);")
        status, output = self.check("--renew")
        self.assertEqual(status, 1)
        self.assertIn("hpeNew is declared and not exported", output)


if __name__ == "__main__":
    unittest.main()
