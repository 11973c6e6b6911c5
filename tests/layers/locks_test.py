"""Runs scripts/check-locks on small source trees: it must accept accesses under the lock and report all other accesses."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADER = "runtime/base/thread_safety.h"

COUNTER = """#pragma once
#include "runtime/base/thread_safety.h"
struct counter {
  hpe::mutex mutex;
  hpe::mutex inner HPE_ACQUIRED_AFTER(mutex);
  hpe::condition_variable changed;
  int count HPE_GUARDED_BY(mutex) = 0;
  void add_locked() HPE_REQUIRES(mutex) { ++count; }
  void add() HPE_EXCLUDES(mutex) {
    const hpe::lock_guard lock(mutex);
    add_locked();
  }
};
"""


class LocksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.write(HEADER, (ROOT / HEADER).read_text())
        self.write("runtime/counter.h", COUNTER)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def check(self, *bodies, include='#include "runtime/counter.h"'):
        entries = []
        for number, body in enumerate(bodies):
            source = self.write(f"runtime/use{number or ''}.cpp", f"{include}\n{body}\n")
            command = f"ccache c++ -I{self.root} -std=c++20 -Wall -Wextra -o use{number}.o -c {source}"
            entries.append({"file": str(source), "directory": str(self.root), "command": command})
        self.write("build/release/compile_commands.json", json.dumps(entries))
        done = subprocess.run([sys.executable, ROOT / "scripts" / "check-locks", "--root", self.root], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_what_holds_the_lock_passes(self):
        status, output = self.check("""
int f1(counter& c) { const hpe::lock_guard lock(c.mutex); return c.count; }
void f3(counter& c) { c.mutex.assert_held(); c.add_locked(); }
void f4(counter& c) { if (c.mutex.try_lock()) { c.add_locked(); c.mutex.unlock(); } }
void f5(counter& c) { const hpe::lock_guard outer(c.mutex); const hpe::lock_guard inner(c.inner); }
void f6(counter& c) {
  hpe::unique_lock lock(c.mutex);
  c.changed.wait(lock, [&]() HPE_REQUIRES(c.mutex) { return c.count > 0; });
  lock.unlock();
  c.add();
  lock.lock();
  c.add_locked();
}""")
        self.assertEqual(status, 0, output)
        self.assertIn("1 files that use annotated locks, 0 with findings", output)

    def test_each_offence_is_named_with_its_line(self):
        offences = {
            "int f1(counter& c) { return c.count; }": "reading variable 'count' requires holding mutex 'c.mutex'",
            "void f2(counter& c) { hpe::unique_lock l(c.mutex); l.unlock(); c.count = 1; }": "writing variable 'count' requires",
            "void f4(counter& c) { c.add_locked(); }": "calling function 'add_locked' requires holding mutex 'c.mutex'",
            "void f5(counter& c) { const hpe::lock_guard l(c.mutex); c.add(); }": "while mutex 'c.mutex' is held",
            "void f6(counter& c) { c.mutex.lock(); }": "still held at the end of function",
            "void f7(counter& c) { const hpe::lock_guard l(c.inner); const hpe::lock_guard m(c.mutex); }": "before 'inner'",
        }
        status, output = self.check("\n".join(offences))
        self.assertEqual(status, 1, output)
        for line, words in enumerate(offences.values(), 2):
            self.assertRegex(output, rf"use\.cpp:{line}:\d+: error: .*{words}")

    def test_files_of_a_folder_may_have_the_same_internal_names(self):
        body = "namespace { int f(counter& c) { const hpe::lock_guard lock(c.mutex); return c.count; } }\nint %s(counter& c) { return f(c); }"
        status, output = self.check(body % "g", body % "h")
        self.assertEqual(status, 0, output)
        self.assertIn("2 files that use annotated locks, 0 with findings", output)

    def test_the_file_of_an_offence_is_named(self):
        status, output = self.check("void f(counter& c) { c.add(); }", "int g(counter& c) { return c.count; }")
        self.assertEqual(status, 1, output)
        self.assertIn("2 files that use annotated locks, 1 with findings", output)
        self.assertRegex(output, r"use1\.cpp:2:\d+: error: reading variable 'count' requires holding mutex 'c.mutex'")

    def test_a_changed_header_is_seen(self):
        body = "void f(counter& c) { c.add_locked(); }"
        self.write("runtime/counter.h", COUNTER.replace("HPE_REQUIRES(mutex) { ++count; }", "{ add(); }"))
        self.assertEqual(self.check(body)[0], 0)
        self.assertEqual(self.check(body)[0], 0)
        self.write("runtime/counter.h", COUNTER)
        self.assertEqual(self.check(body)[0], 1)

    def test_files_without_annotated_locks_are_not_read(self):
        status, output = self.check("int f() { return 0; }", include="")
        self.assertEqual(status, 0, output)
        self.assertIn("0 files that use annotated locks", output)


if __name__ == "__main__":
    unittest.main()
