#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command_options.h"
#include "apps/gather/gather_plan.h"

namespace hpe::gather {

/// The method that the command line names; `automatic` lets the model choose.
enum class wish { automatic, single_pass, multi_pass, partitioned, staged };

/// The largest number of chunks of a table.
inline constexpr std::uint32_t chunks_limit = 1U << 20;

/// The values of the command line.
struct request {
  bool help = false, quiet = false, explain = false, measure = false, no_check = false, host = false;
  std::uint64_t count = std::uint64_t{1} << 22;
  std::string indices, data, output, json;
  std::uint64_t pattern = 0, table = 0, partitions = 0;
  std::uint64_t element = 8, chunks = 0;
  wish how = wish::automatic;
  duplicates equal = duplicates::any;
  out_of_range beyond = out_of_range::refuse;
  std::int64_t devices = 0, repeats = 5;
};

/// Returns the options of `hpe gather` or `hpe scatter`.
[[nodiscard]] std::vector<command_line::option> options_of(request& r, way direction);

/// Returns the text of --help.
[[nodiscard]] std::string help_text(way direction);

}  // namespace hpe::gather
