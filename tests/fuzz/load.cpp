#include "tests/fuzz/load.h"

#include <sanitizer/allocator_interface.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "hpe/error.hpp"
#include "runtime/ptx/analysis/words.h"
#include "runtime/ptx/flow/flat_kernel.h"
#include "runtime/ptx/flow/flow.h"
#include "runtime/ptx/patch/patch.h"
#include "runtime/ptx/program/image.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::fuzz {

namespace {

// Not atomic, because the targets have only one thread.
std::size_t most = 0, in_use = 0;  // bytes; most = 0: no limit

void allocated(const volatile void*, std::size_t bytes) {
  in_use += bytes;
  if (most == 0 || in_use <= most) return;
  std::fprintf(stderr, "the input takes more than %zu bytes of memory\n", most);
  std::abort();
}

void freed(const volatile void* memory) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  const std::size_t bytes = memory == nullptr ? 0 : __sanitizer_get_allocated_size(const_cast<const void*>(memory));
  in_use -= bytes < in_use ? bytes : in_use;
}

[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(allocated, freed);

}  // namespace

memory_limit::memory_limit(std::size_t input_bytes) {
  in_use = 0;
  most = fixed_bytes + most_ratio * input_bytes;
}

memory_limit::~memory_limit() { most = 0; }

void load_ptx(std::vector<std::string> texts) {
  try {
    const std::shared_ptr<const ptx::program> program = ptx::parse(std::move(texts));
    std::vector<std::uint64_t> addresses;
    for (const auto& symbol : program->symbols) addresses.push_back(symbol.is_defined ? 0x10000 : 0);
    const ptx::image placed(program, addresses);
    for (std::uint32_t s = 0; s < program->symbols.size(); ++s)
      if (program->symbols[s].where != ptx::symbol::space::shared) static_cast<void>(placed.contents_of(s));
    const ptx::call_graph calls(*program);
    std::vector<ptx::analysis::kernel_analysis> analyses;
    for (const auto& f : program->functions) {
      if (!f->is_kernel || !f->is_defined) continue;
      if (const auto flat = ptx::flatten(*program, calls, *f))
        static_cast<void>(ptx::control_flow(flat->code, flat->registers.size()));
      analyses.push_back(ptx::analysis::analyse(*program, *f));
      const ptx::analysis::words words(*program, analyses.back());
      for (const auto& access : analyses.back().accesses)
        for (const auto& form : access.forms) static_cast<void>(words.of(form.whole));
    }
    std::vector<const ptx::analysis::kernel_analysis*> pointers;
    for (const auto& a : analyses) pointers.push_back(&a);
    const ptx::patch::patched_module patched = ptx::patch::patch(*program, pointers);
    if (!patched.texts.empty()) static_cast<void>(ptx::parse(patched.texts));
  } catch (const hpe::error&) {
    // hpe refuses this input, which is correct.
  }
}

}  // namespace hpe::fuzz
