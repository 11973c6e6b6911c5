#include "apps/gather/gather_request.h"

#include <fmt/core.h>

#include "apps/command_line/program.h"
#include "apps/command_line/values.h"

namespace hpe::gather {

std::vector<command_line::option> options_of(request& r, way direction) {
  using namespace command_line;
  const bool gathers = direction == way::gather;
  std::vector<option> all{
      {"SIZE|FILE", "",
       "the number of random indices, as in 1000, 2^28 or 64M (default: 4194304); or a file of indices: .npy of 32- "
       "or 64-bit integers, or a .json file of patterns as Spatter reads it",
       to_size_or_file(to_whole(r.count, 1), r.indices)},
      {"--pattern", "K", "the number of the pattern in a .json file (0)", to_whole(r.pattern)},
      {"--partitions", "P",
       "random indices access P equal parts of the table in random order, but ascend within each part",
       to_whole(r.partitions, 1)},
      {"--table", "N", "number of elements of the table (SIZE; for a file of indices: the greatest index + 1)",
       to_whole(r.table, 1)},
      {"--data", "FILE",
       gathers
           ? "the table, as a .npy or raw file (default: generated; each element encodes its own index)"
           : "the values, one for each index, as a .npy or raw file (default: generated; each value encodes its own "
             "place)",
       to_text(r.data)},
      {"--output", "FILE",
       gathers ? "write the values to this file, .npy or raw" : "write the table to this file, .npy or raw",
       to_text(r.output)},
      {"--bytes", "B", "bytes of an element: 4, 8, 16 or 32 (8, or the element size of a .npy file)",
       to_whole(r.element, 4, 32)},
      {"--method", "NAME",
       "automatic (default): the method that the model predicts to be fastest; single-pass, multi-pass, partitioned; "
       "or staged: chunks of the table are copied to the device",
       to_one_of<wish>(r.how, {{"automatic", wish::automatic},
                               {"single-pass", wish::single_pass},
                               {"multi-pass", wish::multi_pass},
                               {"partitioned", wish::partitioned},
                               {"staged", wish::staged}})},
      {"--chunks", "C", "number of chunks of the table, for methods that divide it (16)",
       to_whole(r.chunks, 1, chunks_limit)},
      {"--host", "", "keep the table in host memory, which devices reach over their links", to_flag(r.host)},
      {"--out-of-range", "WHAT", "refuse an index beyond the table, or skip its element (refuse)",
       to_one_of<out_of_range>(r.beyond, {{"refuse", out_of_range::refuse}, {"skip", out_of_range::skip}})}};
  if (!gathers)
    all.push_back({"--duplicates", "WHAT",
                   "which of several elements with the same index remains: any; last: the last one; none: no index "
                   "occurs twice (any)",
                   to_one_of<duplicates>(
                       r.equal, {{"none", duplicates::none}, {"any", duplicates::any}, {"last", duplicates::last}})});
  for (option& o :
       std::vector<option>{devices_option(r.devices),
                           repeats_option(r.repeats),
                           {"--explain", "", "print the model's parameters and predictions", to_flag(r.explain)},
                           {"--measure", "", "measure the model's parameters again", to_flag(r.measure)},
                           {"--no-check", "", "do not check that the result matches the indices", to_flag(r.no_check)},
                           json_option(r.json),
                           quiet_option(r.quiet),
                           help_option(r.help)})
    all.push_back(o);
  return all;
}

std::string help_text(way direction) {
  request defaults;
  const bool gathers = direction == way::gather;
  const char* const name = gathers ? "gather" : "scatter";
  return fmt::format(
      "Usage: hpe {0} [options] [SIZE|FILE]\n\n{1}\n\n{2}\nExamples:\n  hpe {0} 2^26 --explain\n  hpe {0} indices.npy "
      "--data {3}.npy --output {4}.npy\n  hpe {0} amg.json --pattern 3\n",
      name,
      gathers
          ? "Reads elements of a table by index: values[i] = table[indices[i]]. The model of gather and scatter on "
            "this machine chooses the method; its parameters are measured once and kept in ~/.cache/hpe."
          : "Writes elements of a table by index: table[indices[i]] = values[i]. The model of gather and scatter on "
            "this machine chooses the method; its parameters are measured once and kept in ~/.cache/hpe.",
      command_line::lines_of_help(options_of(defaults, direction)), gathers ? "table" : "values",
      gathers ? "values" : "table");
}

}  // namespace hpe::gather
