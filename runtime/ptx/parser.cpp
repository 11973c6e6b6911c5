#include "runtime/ptx/parser.h"

#include "runtime/base/error.h"
#include "runtime/ptx/text_parser.h"
#include "runtime/ptx/verifier.h"

namespace hpe::ptx {

namespace {

void check_calls(const program& p) {
  for (const auto& f : p.functions) {
    for (const instruction& i : f->code) {
      if (i.kind != kind::call || !i.sources.empty()) continue;
      const function& callee = *p.functions[i.callee];
      HPE_REQUIRE(
          callee.is_defined || callee.system_call != builtin::none, HPE_ERROR_INVALID_ARGUMENT,
          "PTX line {}: '{}' in {}: the function {} is defined nowhere in the program, and hpe has none of that name",
          i.line, p.text_of(*f, i), f->name, callee.name);
    }
  }
  for (const symbol& s : p.symbols)
    HPE_REQUIRE(s.is_defined, HPE_ERROR_INVALID_ARGUMENT,
                "the variable {} is declared .extern and defined nowhere in the program", s.name);
}

// Shared variables of the program come first, then those of functions that kernels call, then those of kernels. The
// variables of kernels overlap, because a block runs only one kernel.
void lay_out_shared(program& p) {
  constexpr std::uint32_t alignment = 128;
  const auto rounded = [](std::uint32_t n) { return (n + alignment - 1) / alignment * alignment; };
  std::uint32_t top = rounded(p.shared_size);
  std::vector<std::uint32_t> bases(p.functions.size(), 0);
  for (std::size_t n = 0; n < p.functions.size(); ++n) {
    if (p.functions[n]->is_kernel) continue;
    bases[n] = top;
    top = rounded(top + p.functions[n]->shared_size);
  }
  for (std::size_t n = 0; n < p.functions.size(); ++n) {
    if (!p.functions[n]->is_kernel) continue;
    bases[n] = top;
    p.functions[n]->shared_size += top;
  }
  for (symbol& s : p.symbols)
    if (s.where == symbol::space::shared && s.owner != symbol::no_owner) s.shared_offset += bases[s.owner];
}

}  // namespace

std::unique_ptr<program> parse(std::vector<std::string> texts) {
  auto result = std::make_unique<program>();
  result->texts = std::move(texts);
  result->files.emplace_back();  // number 0: unknown
  linkage shared;
  for (std::uint32_t n = 0; n < result->texts.size(); ++n) text_parser(*result, shared, n).parse();
  check_calls(*result);
  lay_out_shared(*result);
  verify(*result);
  return result;
}

}  // namespace hpe::ptx
