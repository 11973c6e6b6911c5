#include "runtime/device/soft/owner/soft_ptx_module.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/device/ptx/description.h"
#include "runtime/device/soft/owner/soft_set.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::device::soft {

soft_ptx_module::soft_ptx_module(soft_set& set, std::vector<std::string> texts, ptx_recording reads)
    : set_(set), recording_(reads) {
  HPE_REQUIRE(!texts.empty(), HPE_ERROR_INVALID_ARGUMENT, "a module of PTX needs at least one text");
  texts_ = pack_texts(texts, text_bytes_);
  program_ = ptx::parse(std::move(texts));
  layout_ = lay_out(*program_);
  kernels_ = describe_kernels(*program_);
  for (std::size_t n = 0; n < program_->symbols.size(); ++n) {
    const ptx_layout::place_in_part& place = layout_.places[n];
    if (!place.is_there) continue;
    variables_.push_back({program_->symbols[n].name, place.part, place.offset, program_->symbols[n].size});
  }
  id_ = set_.next_module();
}

soft_ptx_module::~soft_ptx_module() {
  control_request what;
  what.what = control_request::kind::unload_ptx;
  what.id = id_;
  try {
    set_.ask([](unsigned) { return true; }, what);
  } catch (const std::exception& e) {  // a device that receives no request keeps the module
    log(log_level::warn, "a module of PTX was not unloaded: {}", e.what());
  }
}

std::size_t soft_ptx_module::bytes_of(ptx_part part) const noexcept {
  return layout_.bytes[static_cast<std::size_t>(part)];
}

std::vector<ptx_contents> soft_ptx_module::place(unsigned device, const ptx_addresses& parts) {
  control_request what;
  what.what = control_request::kind::load_ptx;
  what.id = id_;
  what.ptx_parts = parts;
  what.bytes = text_bytes_;
  what.ptx_reads = recording_;
  const int file = texts_.get();
  set_.ask([&](unsigned d) { return d == device; }, what, std::span(&file, 1));
  return contents(parts);
}

// Returns the initial values of the variables. Values at most most_between bytes apart are returned as one
// ptx_contents, which includes the bytes between them.
std::vector<ptx_contents> soft_ptx_module::contents(const ptx_addresses& addresses) const {
  constexpr std::size_t most_between = std::size_t{64} << 10;
  const ptx::image image(program_, layout_.addresses(addresses));
  // By part; in ascending order of offsets, like the variables.
  std::array<std::vector<ptx_contents>, ptx_part_count> parts;
  for (std::uint32_t n = 0; n < layout_.places.size(); ++n) {
    const ptx_layout::place_in_part& place = layout_.places[n];
    const std::vector<std::uint8_t> bytes = place.is_there ? image.contents_of(n) : std::vector<std::uint8_t>();
    if (bytes.empty()) continue;
    auto& stretches = parts[static_cast<std::size_t>(place.part)];
    if (stretches.empty() || place.offset > stretches.back().offset + stretches.back().bytes.size() + most_between)
      stretches.push_back({place.part, place.offset, {}});
    ptx_contents& stretch = stretches.back();
    stretch.bytes.resize(place.offset - stretch.offset + bytes.size());
    std::memcpy(stretch.bytes.data() + (place.offset - stretch.offset), bytes.data(), bytes.size());
  }
  std::vector<ptx_contents> result;
  for (auto& stretches : parts) std::move(stretches.begin(), stretches.end(), std::back_inserter(result));
  return result;
}

}  // namespace hpe::device::soft
