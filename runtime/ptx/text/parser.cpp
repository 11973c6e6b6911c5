#include "runtime/ptx/text/parser.h"

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <map>

#include "runtime/base/error.h"
#include "runtime/ptx/build/builder.h"
#include "runtime/ptx/execution/calls/device_runtime.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/call_graph.h"
#include "runtime/ptx/program/written_variables.h"
#include "runtime/ptx/text/text_parser.h"
#include "runtime/ptx/text/verifier.h"

namespace hpe::ptx {

namespace {

void check_calls(const program& p, const function& f) {
  for (const instruction& i : f.code) {
    if (i.kind != kind::call || !i.sources.empty()) continue;
    const function& callee = *p.functions[i.callee];
    if (callee.is_defined || callee.system_call != builtin::none) continue;
    HPE_REQUIRE(!is_absent_from_device_runtime(callee.name), HPE_ERROR_NOT_SUPPORTED,
                "PTX line {}: '{}' in {}: soft devices do not have the device function {} (dynamic parallelism)",
                i.line, p.text_of(f, i), f.name, callee.name);
    HPE_THROW(
        HPE_ERROR_INVALID_ARGUMENT,
        "PTX line {}: '{}' in {}: the function {} is not defined in the program, and hpe has no function of that name",
        i.line, p.text_of(f, i), f.name, callee.name);
  }
}

void check_variables(const program& p) {
  for (const symbol& s : p.symbols)
    HPE_REQUIRE(s.is_defined, HPE_ERROR_INVALID_ARGUMENT,
                "the variable {} is declared .extern and defined nowhere in the program", s.name);
}

bool is_static_shared(const symbol& s) { return s.where == symbol::space::shared && !s.is_dynamic_shared; }

using variable_set = boost::dynamic_bitset<>;  // bit n: whether the set contains symbol n

// Finds the static shared variables that each kernel may use: the variables that the kernel declares, that the kernel
// or a function it may call names, and whose addresses are initial values of other variables.
class shared_variables {
 public:
  explicit shared_variables(const program& p) : calls_(p), named_(p.functions.size()), of_all_(p.symbols.size()) {
    const auto add = [&](std::uint32_t variable, std::vector<std::uint32_t>& to) {
      if (is_static_shared(p.symbols[variable]) && (to.empty() || to.back() != variable)) to.push_back(variable);
    };
    for (std::uint32_t n = 0; n < p.symbols.size(); ++n) {
      if (p.symbols[n].owner != symbol::no_owner) add(n, named_[p.symbols[n].owner]);
      for (const symbol::relocation& r : p.symbols[n].relocations)
        if (!r.is_function && is_static_shared(p.symbols[r.target])) of_all_.set(r.target);
    }
    for (std::uint32_t f = 0; f < p.functions.size(); ++f)
      for (const instruction& i : p.functions[f]->code)
        for (const operand& o : i.sources)
          if (o.what == operand::kind::symbol) add(o.index, named_[f]);
  }

  [[nodiscard]] variable_set of_kernel(std::uint32_t kernel) const {
    variable_set variables = of_all_, reached(named_.size());
    std::vector<std::uint32_t> open;
    const auto reach = [&](std::uint32_t function) {
      if (!reached.test_set(function)) open.push_back(function);
    };
    reach(kernel);
    while (!open.empty()) {
      const std::uint32_t f = open.back();
      open.pop_back();
      for (const std::uint32_t n : named_[f]) variables.set(n);
      for (const std::uint32_t callee : calls_.callees(f)) reach(callee);
      if (calls_.calls_pointers(f))
        for (const std::uint32_t callee : calls_.targets_of_pointers()) reach(callee);
    }
    return variables;
  }

 private:
  call_graph calls_;
  std::vector<std::vector<std::uint32_t>> named_;  // by function: the variables that the function names
  variable_set of_all_;                            // the variables whose addresses are initial values
};

// Computes the offset of each static shared variable. Two variables may overlap if no kernel uses both, because a block
// runs only one kernel. With -rdc=true, nvcc declares the shared variables of all kernels outside of the kernels, and
// all these variables together may be larger than the shared memory of a block.
void lay_out_shared(program& p) {
  if (std::none_of(p.symbols.begin(), p.symbols.end(), is_static_shared)) return;
  const shared_variables variables(p);
  std::vector<variable_set> used(p.functions.size());
  std::vector<std::vector<std::uint32_t>> users(p.symbols.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t f = 0; f < p.functions.size(); ++f) {
    if (!p.functions[f]->is_kernel) continue;
    used[f] = variables.of_kernel(f);
    for (auto n = used[f].find_first(); n != variable_set::npos; n = used[f].find_next(n)) {
      if (users[n].empty()) order.push_back(static_cast<std::uint32_t>(n));
      users[n].push_back(f);
    }
  }
  // Places the variables that many kernels use first, so that the variables of single kernels follow without gaps.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return users[a].size() > users[b].size(); });

  variable_set placed(p.symbols.size());
  for (const std::uint32_t n : order) {
    symbol& s = p.symbols[n];
    variable_set beside(p.symbols.size());  // variables that may not overlap this one
    for (const std::uint32_t f : users[n]) beside |= used[f];
    beside &= placed;
    std::map<std::uint64_t, std::uint64_t> taken;  // the ranges of bytes in use: end by begin
    for (auto other = beside.find_first(); other != variable_set::npos; other = beside.find_next(other)) {
      const symbol& o = p.symbols[other];
      std::uint64_t& end = taken[o.shared_offset];
      end = std::max(end, o.shared_offset + o.size);
    }
    std::uint64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + s.size <= begin) break;
      offset = std::max(offset, (end + s.alignment - 1) / s.alignment * s.alignment);
    }
    HPE_REQUIRE(s.size <= most_shared_memory && offset + s.size <= most_shared_memory, HPE_ERROR_INVALID_ARGUMENT,
                "{} needs {} bytes of shared memory at offset {}; a block may have {} bytes", s.name, s.size, offset,
                most_shared_memory);
    s.shared_offset = static_cast<std::uint32_t>(offset);
    placed.set(n);
    for (const std::uint32_t f : users[n])
      p.functions[f]->shared_size = std::max(p.functions[f]->shared_size, static_cast<std::uint32_t>(offset + s.size));
  }
}

}  // namespace

std::unique_ptr<program> parse(std::vector<std::string> texts, warp_order order, unknown_code unknown) {
  auto result = std::make_unique<program>();
  result->texts = std::move(texts);
  result->files.emplace_back();  // file number 0 means that the source file is unknown
  linkage shared;
  for (std::uint32_t n = 0; n < result->texts.size(); ++n) text_parser(*result, shared, n, unknown).parse();
  for (const auto& f : result->functions) {
    try {
      check_calls(*result, *f);
      verify(*result, *f);
    } catch (const error& e) {
      if (unknown == unknown_code::refused) throw;
      result->leave_out(*f, e.what());
    }
  }
  check_variables(*result);
  lay_out_shared(*result);
  find_written_variables(*result);
  insert_pauses_at_calls(*result);
  result->in_lockstep = order == warp_order::lockstep;
  if (result->in_lockstep)
    for (const auto& f : result->functions) insert_convergence(*f);
  return result;
}

}  // namespace hpe::ptx
