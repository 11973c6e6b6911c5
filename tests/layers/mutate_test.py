"""Tests scripts/mutate: the changes that it makes to a line, and a whole run on a small project."""

import importlib.machinery
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MUTATE = Path(__file__).parents[2] / "scripts" / "mutate"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutate", str(MUTATE))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)

PROJECT = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(small CXX)
enable_testing()
add_subdirectory(tests/sum)
""",
    "tests/sum/CMakeLists.txt": """include_directories(${PROJECT_SOURCE_DIR})
add_executable(sum-test test.cpp)
add_test(NAME sum COMMAND sum-test)
set_tests_properties(sum PROPERTIES TIMEOUT 900)
add_test(NAME broken COMMAND sum-test broken)
""",
    "tests/sum/test.cpp": """#include "runtime/sum/sum.h"
int main(int count, char**) { return count == 1 && sum(3) == 6 ? 0 : 1; }
""",
    "runtime/sum/sum.h": """inline int limit(int n) { return n; }
inline int sum(int n) {
  int result = n;
  while (n > 1)
    result += --n;
  return result;
}
""",
    ".gitignore": "build\n",
}


def changed(line):
    return {text.strip() for _, text in mutate.mutations(line)}


class MutationsTest(unittest.TestCase):
    def test_conditions(self):
        self.assertIn("if (!(a.empty())) stop();", changed("  if (a.empty()) stop();"))
        self.assertIn("while (!(f(a, (b)))) {", changed("while (f(a, (b))) {"))
        self.assertIn("for (int i = 0; i <= n; ++i) {", changed("for (int i = 0; i < n; ++i) {"))
        self.assertIn("x = a != b || c;", changed("x = a == b || c;"))
        self.assertIn("x = a == b && c;", changed("x = a == b || c;"))

    def test_bounds_and_constants(self):
        self.assertIn("x = f(n);", changed("x = f(n - 1);"))
        self.assertIn("x = f(n, 9);", changed("x = f(n, 8);"))
        self.assertIn("x = f(n, true);", changed("x = f(n, false);"))
        self.assertIn("write(file, data, 0);", changed("write(file, data, offset);"))
        self.assertNotIn("void write(int file, long 0);", changed("void write(int file, long offset);"))

    def test_dropped_statements(self):
        self.assertIn(";", changed("  order_.record(range, point);"))
        self.assertIn(";", changed("  regions[i]->close();"))
        self.assertIn(";", changed("  const std::lock_guard lock(mutex_);"))
        self.assertIn(";", changed("  const hpe::lock_guard lock(r.mutex);"))
        self.assertIn(";", changed("  used_ += bytes;"))
        self.assertIn(";", changed("  if (error != 0) return error;"))

    def test_what_is_left_alone(self):
        for line in ("// if (a == b)", "  /// a < b", "#include <vector>", '  log(log_level::warn, "a == b {}", 1);', "int count_ = 0;",
                     "  HPE_INVARIANT(a == b);", "  static_assert(a < b);", "  std::size_t bytes{1};", "  return x;", "", "  case a == b:",
                     "  all.reserve(n + 1);", "  mutex_.assert_held();", "  virtual void stop() noexcept = 0;"):
            self.assertEqual(changed(line), set(), line)
        self.assertEqual(changed('x = f("a == b || 1");'), {";"})
        self.assertEqual(changed("      f(n), n));"), set(), "the end of a longer statement")
        self.assertEqual(changed("x = y;  // a < b"), {";"})


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        for name, text in PROJECT.items():
            self.write(name, text)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def command(self, *options):
        return [sys.executable, MUTATE, "--root", self.root, "--folder", "runtime/sum", *options]

    def run_it(self, *options):
        done = subprocess.run(self.command(*options), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, text in PROJECT.items():
            self.assertEqual((self.root / name).read_text(), text)
        return done.stdout

    def judged(self):
        return json.loads((self.root / "build/mutants/seed-1.json").read_text())["mutants"]

    def outcomes(self):
        return {mutant["after"]: mutant["outcome"] for mutant in self.judged()}

    def test_a_run(self):
        output = self.run_it("--count", "2")
        # "n >= 1" gives the same sum; every other change gives a different sum.
        self.assertIn("left out, as they fail on the unchanged source: broken", output)
        self.assertRegex(output, r"runtime/sum +\d of +2 found")
        for mutant in self.judged():
            self.assertEqual(mutant["outcome"], "survived" if mutant["after"] == "while (n >= 1)" else "found", mutant)
        self.assertEqual({mutant["by"] for mutant in self.judged()} - {""}, {"sum: sum"})
        before = (self.root / "build/mutants/seed-1.json").stat().st_mtime_ns
        self.run_it("--count", "2", "--resume")
        self.assertEqual((self.root / "build/mutants/seed-1.json").stat().st_mtime_ns, before)

    def test_tests_of_one_program_run_together(self):
        self.write("tests/sum/CMakeLists.txt", """find_package(GTest REQUIRED)
include(GoogleTest)
include_directories(${PROJECT_SOURCE_DIR})
add_library(sum STATIC ../../runtime/sum/sum.cpp)
add_executable(sum-test test.cpp)
target_link_libraries(sum-test sum GTest::gtest_main)
gtest_discover_tests(sum-test)
add_executable(other-test other.cpp)
add_test(NAME other COMMAND other-test)
""")
        self.write("runtime/sum/sum.cpp", """#include <cstdlib>
int sum(int n) {
  int result = 0;
  while (n > 0)
    result += n--;
  if (result == 10) std::abort();
  return result;
}
""")
        self.write("tests/sum/test.cpp", """#include <gtest/gtest.h>
int sum(int n);
int runs = 0;
TEST(Sum, OfThree) { ++runs; EXPECT_EQ(sum(3), 6); }
TEST(Sum, AloneOfFive) { EXPECT_EQ(++runs, 1); EXPECT_EQ(sum(5), 15); }
""")
        self.write("tests/sum/other.cpp", "int main() { return 0; }\n")
        judge = lambda line: subprocess.run(self.command("--only", f"runtime/sum/sum.cpp:{line}"), capture_output=True, text=True,
                                            check=True).stdout
        self.assertIn("run alone, as they fail after others: Sum.AloneOfFive", judge(4))
        self.assertEqual(self.outcomes(), {"while (!(n > 0))": "found", "while (n > 1)": "found", "while (n >= 0)": "survived"})
        judge(6)
        self.assertEqual(self.outcomes(), {"if (!(result == 10)) std::abort();": "found", "if (result != 10) std::abort();": "found",
                                           "if (result == 11) std::abort();": "survived"})
        self.assertLessEqual({mutant["by"] for mutant in self.judged()}, {"sum: Sum.OfThree", "sum: Sum.AloneOfFive", ""})

    def test_one_line_and_equivalents(self):
        listed = self.run_it("--list", "--only", "runtime/sum/sum.h:4")
        self.assertIn("+ while (n >= 1)", listed)
        self.assertIn("+ while (!(n > 1))", listed)
        self.assertIn("+ while (n > 2)", listed)
        self.write("scripts/mutants-equivalent.txt", "# What follows.\n\nruntime/sum/sum.h\n- while (n > 1)\n+ while (n >= 1)\n# adds 0\n")
        self.assertNotIn("+ while (n >= 1)", self.run_it("--list", "--only", "runtime/sum/sum.h:4"))
        self.assertEqual(self.run_it("--list", "--seed", "7"), self.run_it("--list", "--seed", "7"))

    def test_mirrors(self):
        self.write("tests/interpose/gpu/CMakeLists.txt", "")
        copy = mutate.Copy(self.root, self.root / "build", ".")
        for folder, mirror in (("runtime/sum", "sum"), ("interpose/sum/more", "sum"), ("interpose/gpu/shim", "interpose/gpu")):
            self.assertEqual(copy.stages(folder, True), [mirror], folder)
        self.assertEqual(copy.stages("runtime/other", True), [])

    def test_only_some_tests(self):
        output = self.run_it("--count", "1", "--tests", "^sum$")
        self.assertNotIn("left out", output)
        self.assertEqual(len(self.judged()), 1)

    def test_what_does_not_compile_is_redrawn(self):
        text = PROJECT["runtime/sum/sum.h"].replace("return result", "return\n      limit(result)")
        self.write("runtime/sum/sum.h", text)
        output = subprocess.run(self.command("--only", "runtime/sum/sum.h:7"), capture_output=True, text=True, check=True).stdout
        self.assertNotIn("sum.h:7", output)
        self.assertIn("sum.h:7", subprocess.run(self.command("--list", "--only", "runtime/sum/sum.h:7"), capture_output=True,
                                                text=True, check=True).stdout)

    def test_an_interrupted_run_leaves_the_tree_and_its_results(self):
        process = subprocess.Popen(self.command("--count", "50"), stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if " found " in line or " survived " in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        self.assertEqual(process.wait(), 0)
        process.stdout.close()
        for name, text in PROJECT.items():
            self.assertEqual((self.root / name).read_text(), text)
        self.assertIn("interrupted", rest)
        self.assertGreaterEqual(len(self.judged()), 1)
        self.run_it("--count", "3", "--resume")


if __name__ == "__main__":
    unittest.main()
