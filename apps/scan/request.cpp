#include "apps/scan/request.h"

#include <vector>

#include "apps/command_line/values.h"

namespace hpe::scan {

namespace {

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"--length", "N", "elements of a problem, as in 1000, 2^28 or 64M (what the file has, or 2^24)",
       to_whole(r.length)},
      {"--problems", "G", "problems, one behind the other, scanned in one call (1)", to_whole(r.problems)},
      {"--type", "TYPE", "i32, i64, f32 or f64 (i32)", to_word(r.type, {"i32", "i64", "f32", "f64"})},
      {"--operator", "OP", "sum, min or max (sum)", to_word(r.op, {"sum", "min", "max"})},
      {"--exclusive", "", "element i gets what is before it, and not itself", to_flag(r.exclusive)},
      {"--in-place", "", "write over the input", to_flag(r.in_place)},
      {"--algorithm", "HOW", "single-pass, three-stages or auto (auto)",
       to_word(r.how, {"auto", "single-pass", "three-stages"})},
      {"--split", "HOW",
       "problems: whole ones to each device; mps: all devices share each problem;\nmp-pc: devices of one link domain "
       "share problems; auto: by batch and topology (auto)",
       to_word(r.spread, {"auto", "problems", "mps", "mp-pc"})},
      {"--iterations", "K", "three stages: iterations over a chunk, a power of two (searched for, and kept)",
       to_whole(r.iterations)},
      {"--devices", "N", "use the first N devices (all; HPE_DEVICES=soft:N makes N)", to_whole(r.devices)},
      {"--repeats", "N", "timed runs; the median is told (5)", to_whole(r.repeats, 1)},
      {"--output", "FILE", "write the result there, as it lies in memory", to_text(r.output)},
      {"--explain", "", "tell what was chosen, and why", to_flag(r.explain)},
      {"--no-check", "", "do not compare the result with a scan on the host", to_flag(r.no_check)},
      {"--help", "", "this text", to_flag(r.help)},
  };
}

}  // namespace

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv, &r.file);
  return r;
}

built_in operator_named(const std::string& name) {
  for (const built_in op : {built_in::sum, built_in::min, built_in::max})
    if (name == name_of(op)) return op;
  throw bad_input("--operator " + name + ": possible are sum, min, max");
}

std::string help_text() {
  constexpr std::size_t column = 24;
  request defaults;
  return "usage: hpe scan [FILE] [options]\n"
         "Batched prefix sums, minima or maxima on all devices: of the elements of FILE, or of random ones.\n\n" +
         command_line::lines_of_help(options_of(defaults), column) +
         "\nK of three stages is kept in HPE_SCAN_CACHE (~/.cache/hpe/scan).\n";
}

}  // namespace hpe::scan
