#include <charconv>

#include "runtime/base/error.h"
#include "runtime/device/cuda/open.h"

namespace hpe::device::cuda {

std::optional<unsigned> parse_count(const std::string& text) {
  const std::string family = "cuda";
  if (text == family) return std::nullopt;
  unsigned count = 0;
  const char* const begin = text.data() + family.size() + 1;
  const char* const end = text.data() + text.size();
  const bool has_colon = text.starts_with(family + ":") && begin < end;
  const auto [stop, failure] = std::from_chars(has_colon ? begin : end, end, count);
  HPE_REQUIRE(has_colon && failure == std::errc{} && stop == end && count > 0, HPE_ERROR_INITIALIZATION,
              "HPE_DEVICES=\"{}\" names no CUDA devices; use cuda for all GPUs, or cuda:N for the first N", text);
  return count;
}

}  // namespace hpe::device::cuda
