#pragma once

// Support for programs whose functions each have one defect, which `hpe run --check` must find.
//
//   program wrong|right [CASE...]
//
// runs the named cases, or all cases except those for which CASE_ALONE is used, with or without their defects. The
// comment behind `CASE(name) {` tells what the check must find with `wrong`: the kind, then the name of the kernel or
// `-`. The comments `FIRST` and `SECOND` mark the two source lines that the finding must name. With `right`, the check
// must find nothing. The words `(not found)` behind the kernel mark a defect that the check does not find, the words
// `(not on GPUs)` one that it finds only on soft devices, and `(only on GPUs)` one that it finds only on GPUs.
// check_cases.py reads these comments. A case that cannot run on a machine says so by skip().
//
// The function of CASE_WITH(frame, name) is a member of a class that is derived from `frame`, and uses the members of
// this structure: memory and streams that several cases need.

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

struct check_case {
  const char* name;
  void (*run)(bool wrong);
  bool alone;
};

inline std::vector<check_case>& all_cases() {
  static std::vector<check_case> all;
  return all;
}

inline const check_case* running_case = nullptr;

// Says that the case that runs cannot run on this machine. Then the case must return at once.
inline void skip() { std::printf("skipped: %s\n", running_case->name); }

struct registered_case {
  registered_case(const char* name, void (*run)(bool), bool alone) { all_cases().push_back({name, run, alone}); }
};

#define REGISTERED_CASE(name, alone)                                  \
  static void name(bool wrong);                                       \
  static const registered_case name##_registered(#name, name, alone); \
  static void name([[maybe_unused]] bool wrong)

#define CASE(name) REGISTERED_CASE(name, false)
#define CASE_ALONE(name) REGISTERED_CASE(name, true)  // needs a process of its own

#define CASE_WITH(frame, name)                               \
  struct name##_case : frame {                               \
    void run(bool wrong);                                    \
  };                                                         \
  REGISTERED_CASE(name, false) { name##_case().run(wrong); } \
  void name##_case::run([[maybe_unused]] bool wrong)

// Runs the cases that the command line names. `after` runs after each of them.
inline int run_cases(int argc, char** argv, void (*after)()) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how != "wrong" && how != "right") {
    std::fprintf(stderr, "usage: %s wrong|right [CASE...]\n", argv[0]);
    return 2;
  }
  const auto run = [&](const check_case& c) {
    running_case = &c;
    c.run(how == "wrong");
    after();
  };
  for (int i = 2; i < argc; ++i) {
    bool found = false;
    for (const check_case& c : all_cases())
      if (std::strcmp(c.name, argv[i]) == 0) {
        found = true;
        run(c);
      }
    if (!found) {
      std::fprintf(stderr, "no case %s\n", argv[i]);
      return 2;
    }
  }
  if (argc == 2)
    for (const check_case& c : all_cases())
      if (!c.alone) run(c);
  return 0;
}
