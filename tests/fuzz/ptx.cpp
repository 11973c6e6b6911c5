// libFuzzer: PTX. hpe parses any text, links it with itself, assigns addresses and analyses its kernels, or refuses it
// with an error.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/ptx/analysis/words.h"
#include "runtime/ptx/program/image.h"
#include "runtime/ptx/text/parser.h"

namespace {

void load(std::vector<std::string> texts) {
  try {
    const std::shared_ptr<const hpe::ptx::program> program = hpe::ptx::parse(std::move(texts));
    std::vector<std::uint64_t> addresses;
    for (const auto& symbol : program->symbols) addresses.push_back(symbol.is_defined ? 0x10000 : 0);
    const hpe::ptx::image placed(program, addresses);
    for (std::uint32_t s = 0; s < program->symbols.size(); ++s)
      if (program->symbols[s].where != hpe::ptx::symbol::space::shared) static_cast<void>(placed.contents_of(s));
    for (const auto& f : program->functions) {
      if (!f->is_kernel || !f->is_defined) continue;
      const auto found = hpe::ptx::analysis::analyse(*program, *f);
      const hpe::ptx::analysis::words words(*program, found);
      for (const auto& access : found.accesses)
        for (const auto& form : access.forms) static_cast<void>(words.of(form.whole));
    }
  } catch (const hpe::error&) {
    // Refused, as it should be.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  load({text});
  load({text, text});
  return 0;
}
