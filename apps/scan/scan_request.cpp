#include "apps/scan/scan_request.h"

#include <vector>

#include "apps/command_line/program.h"

namespace hpe::scan {

namespace {

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SIZE|FILE", "",
       "the number of random elements in a problem, as in 1000, 2^28 or 64M (default: 2^24); or a file:\n"
       ".npy, or raw as in memory",
       to_size_or_file(to_whole(r.length, 1), r.file)},
      {"--size", "N",
       "number of elements of a problem in the file (the last axis of a .npy file; else an equal part of the file)",
       to_whole(r.length, 1)},
      {"--problems", "G", "number of consecutive problems, scanned in one call (1, or the first axis of a .npy file)",
       to_whole(r.problems, 1)},
      {"--type", "TYPE", "i32, i64, f32 or f64 (default: the type in the .npy file, else i32)",
       to_word(r.type, {"i32", "i64", "f32", "f64"})},
      {"--operator", "OP", "sum, min or max (sum)", to_word(r.op, {"sum", "min", "max"})},
      {"--exclusive", "", "element i of the result combines only the elements before i", to_flag(r.exclusive)},
      {"--in-place", "", "write over the input", to_flag(r.in_place)},
      {"--algorithm", "HOW", "single-pass, three-stages or auto (auto)",
       to_word(r.how, {"auto", "single-pass", "three-stages"})},
      {"--split", "HOW",
       "problems: each device scans whole problems; mps: all devices share each problem;\n"
       "mp-pc: devices of one link domain share problems; auto: by batch and topology (auto)",
       to_word(r.spread, {"auto", "problems", "mps", "mp-pc"})},
      {"--iterations", "K",
       "number of iterations over a chunk, a power of two, for --algorithm three-stages (default: found by a "
       "search, and kept for later runs)",
       to_whole(r.iterations)},
      devices_option(r.devices),
      repeats_option(r.repeats),
      {"--output", "FILE", "write the result to this file: .npy if its name ends in .npy, else raw", to_text(r.output)},
      {"--explain", "", "print the choices and their reasons", to_flag(r.explain)},
      {"--no-check", "", "do not compare the result with a scan on the host", to_flag(r.no_check)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help),
  };
}

}  // namespace

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv);
  return r;
}

built_in operator_named(const std::string& name) {
  for (const built_in op : {built_in::sum, built_in::min, built_in::max})
    if (name == name_of(op)) return op;
  throw bad_input("--operator " + name + ": the possible values are sum, min, max");
}

std::string help_text() {
  request defaults;
  return "Usage: hpe scan [options] [SIZE|FILE]\n\n"
         "Computes batched prefix sums, minima or maxima of random elements or of the elements of a file, on all "
         "devices.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nThe K that a search finds for three stages is kept in HPE_SCAN_CACHE (~/.cache/hpe/scan).\n"
         "\nExamples:\n"
         "  hpe scan 2^28 --type f32\n"
         "  hpe scan in.npy --operator max --output out.npy\n";
}

}  // namespace hpe::scan
