#include "runtime/ptx/build/fuse.h"

#include <algorithm>
#include <array>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

bool is_unrounded(const instruction& i) {
  return i.kind == kind::pure && (i.types[0] == type::f32 || i.types[0] == type::f64) &&
         i.modifiers.one_of(modifier::rn, modifier::rz, modifier::rm, modifier::rp) == modifier::count;
}

bool is_sum(const instruction& i) { return is_unrounded(i) && (i.op == opcode::add || i.op == opcode::sub); }

bool is_product(const instruction& i) {
  return is_unrounded(i) && i.op == opcode::mul && !i.has(modifier::sat) && !i.guard.is_register() &&
         i.results[0].is_register();
}

bool is_like(const instruction& sum, const instruction& product) {
  return sum.types[0] == product.types[0] && sum.has(modifier::ftz) == product.has(modifier::ftz);
}

/// Returns, for each register, the product that the register contains; null if another instruction also writes the
/// register, or reads it and is not a sum.
std::vector<const instruction*> products_for_sums(const function& f) {
  std::vector<unsigned> writes(f.registers.size());
  std::vector<const instruction*> products(f.registers.size());
  for (const instruction& i : f.code)
    for (const operand& d : i.results)
      if (d.is_register()) products[d.index] = ++writes[d.index] == 1 && is_product(i) ? &i : nullptr;
  for (const instruction& i : f.code) {
    if (i.guard.is_register()) products[i.guard.index] = nullptr;
    for (const operand& o : i.sources) {
      if (!o.is_register() || products[o.index] == nullptr) continue;
      if (!is_sum(i) || !is_like(i, *products[o.index])) products[o.index] = nullptr;
    }
  }
  return products;
}

}  // namespace

void fuse_products(function& f) {
  const std::vector<const instruction*> products = products_for_sums(f);
  if (std::all_of(products.begin(), products.end(), [](const instruction* p) { return p == nullptr; })) return;
  std::vector<bool> is_target(f.code.size() + 1);
  for (const instruction& i : f.code)
    for (const std::uint32_t target : i.targets) is_target[target] = true;

  // The position after the last write of each register. A product is valid if it follows the last branch target, and if
  // its factors have not been written since.
  std::vector<std::size_t> written(f.registers.size());
  std::size_t block = 0;
  const auto valid_product = [&](const operand& o) -> const instruction* {
    if (!o.is_register() || products[o.index] == nullptr) return nullptr;
    const instruction* const product = products[o.index];
    const auto at = static_cast<std::size_t>(product - f.code.data());
    const bool has_factors = std::all_of(product->sources.begin(), product->sources.end(),
                                         [&](const operand& s) { return !s.is_register() || written[s.index] <= at; });
    return written[o.index] == at + 1 && at >= block && has_factors ? product : nullptr;
  };

  for (std::size_t n = 0; n < f.code.size(); ++n) {
    if (is_target[n]) block = n;
    instruction& i = f.code[n];
    if (is_sum(i)) {
      // If both operands are products, NVIDIA's assembler fuses the first one into a difference, and the second one
      // into a sum.
      const bool subtracts = i.op == opcode::sub;
      for (const std::size_t which : subtracts ? std::array{0, 1} : std::array{1, 0}) {
        const instruction* const product = valid_product(i.sources[which]);
        if (product == nullptr) continue;
        i.op = !subtracts ? opcode::fma : which == 0 ? opcode::product_less : opcode::less_product;
        i.sources = {product->sources[0], product->sources[1], i.sources[1 - which]};
        i.modifiers.add(modifier::rn);
        set_scalar(i);
        break;
      }
    }
    for (const operand& d : i.results)
      if (d.is_register()) written[d.index] = n + 1;
  }
}

}  // namespace hpe::ptx
