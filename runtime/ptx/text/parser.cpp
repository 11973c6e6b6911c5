#include "runtime/ptx/text/parser.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/ptx/build/builder.h"
#include "runtime/ptx/execution/device_runtime.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/call_graph.h"
#include "runtime/ptx/text/text_parser.h"
#include "runtime/ptx/text/verifier.h"

namespace hpe::ptx {

namespace {

void check_calls(const program& p) {
  for (const auto& f : p.functions) {
    for (const instruction& i : f->code) {
      if (i.kind != kind::call || !i.sources.empty()) continue;
      const function& callee = *p.functions[i.callee];
      if (callee.is_defined || callee.system_call != builtin::none) continue;
      HPE_REQUIRE(!is_absent_from_device_runtime(callee.name), HPE_ERROR_NOT_SUPPORTED,
                  "PTX line {}: '{}' in {}: dynamic parallelism: soft devices do not have the function {} for kernels",
                  i.line, p.text_of(*f, i), f->name, callee.name);
      HPE_THROW(
          HPE_ERROR_INVALID_ARGUMENT,
          "PTX line {}: '{}' in {}: the function {} is defined nowhere in the program, and hpe has none of that name",
          i.line, p.text_of(*f, i), f->name, callee.name);
    }
  }
  for (const symbol& s : p.symbols)
    HPE_REQUIRE(s.is_defined, HPE_ERROR_INVALID_ARGUMENT,
                "the variable {} is declared .extern and defined nowhere in the program", s.name);
}

bool is_static_shared(const symbol& s) { return s.where == symbol::space::shared && !s.is_dynamic_shared; }

// Numbers of the static shared variables of each kernel: its own, those that it or a function that it may call names,
// and those whose addresses are initial values of variables.
class shared_variables {
 public:
  explicit shared_variables(const program& p) : calls_(p), named_(p.functions.size()) {
    const auto add = [&](std::uint32_t variable, std::set<std::uint32_t>& to) {
      if (is_static_shared(p.symbols[variable])) to.insert(variable);
    };
    for (std::uint32_t n = 0; n < p.symbols.size(); ++n) {
      if (p.symbols[n].owner != symbol::no_owner) add(n, named_[p.symbols[n].owner]);
      for (const symbol::relocation& r : p.symbols[n].relocations)
        if (!r.is_function) add(r.target, in_initial_values_);
    }
    for (std::uint32_t f = 0; f < p.functions.size(); ++f)
      for (const instruction& i : p.functions[f]->code)
        for (const operand& o : i.sources)
          if (o.what == operand::kind::symbol) add(o.index, named_[f]);
  }

  [[nodiscard]] std::set<std::uint32_t> of_kernel(std::uint32_t kernel) const {
    std::set<std::uint32_t> variables = in_initial_values_, reached{kernel};
    for (std::vector<std::uint32_t> open{kernel}; !open.empty();) {
      const std::uint32_t f = open.back();
      open.pop_back();
      variables.insert(named_[f].begin(), named_[f].end());
      const auto reach = [&](const std::vector<std::uint32_t>& callees) {
        for (const std::uint32_t callee : callees)
          if (reached.insert(callee).second) open.push_back(callee);
      };
      reach(calls_.callees(f));
      if (calls_.calls_pointers(f)) reach(calls_.targets_of_pointers());
    }
    return variables;
  }

 private:
  call_graph calls_;
  std::vector<std::set<std::uint32_t>> named_;  // by function
  std::set<std::uint32_t> in_initial_values_;
};

// Variables overlap unless some kernel uses both, because a block runs only one kernel. With -rdc=true nvcc declares
// all of them outside of the kernels, and in all a program may have more than a block can.
void lay_out_shared(program& p) {
  const shared_variables variables(p);
  std::vector<std::set<std::uint32_t>> used(p.functions.size());
  std::vector<std::vector<std::uint32_t>> users(p.symbols.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t f = 0; f < p.functions.size(); ++f) {
    if (!p.functions[f]->is_kernel) continue;
    used[f] = variables.of_kernel(f);
    for (const std::uint32_t n : used[f]) {
      if (users[n].empty()) order.push_back(n);
      users[n].push_back(f);
    }
  }
  // Variables of many kernels come first, so that those of single kernels lie behind them without gaps.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return users[a].size() > users[b].size(); });

  std::set<std::uint32_t> placed;
  for (const std::uint32_t n : order) {
    symbol& s = p.symbols[n];
    std::map<std::uint64_t, std::uint64_t> taken;  // begin and end of variables that may not overlap this one
    for (const std::uint32_t f : users[n]) {
      for (const std::uint32_t other : used[f]) {
        if (!placed.contains(other)) continue;
        const symbol& o = p.symbols[other];
        std::uint64_t& end = taken[o.shared_offset];
        end = std::max(end, o.shared_offset + o.size);
      }
    }
    std::uint64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + s.size <= begin) break;
      offset = std::max(offset, (end + s.alignment - 1) / s.alignment * s.alignment);
    }
    HPE_REQUIRE(s.size <= most_shared_memory && offset + s.size <= most_shared_memory, HPE_ERROR_INVALID_ARGUMENT,
                "{} needs {} bytes of shared memory at {}; a block may have {}", s.name, s.size, offset,
                most_shared_memory);
    s.shared_offset = static_cast<std::uint32_t>(offset);
    placed.insert(n);
    for (const std::uint32_t f : users[n])
      p.functions[f]->shared_size = std::max(p.functions[f]->shared_size, static_cast<std::uint32_t>(offset + s.size));
  }
}

}  // namespace

std::unique_ptr<program> parse(std::vector<std::string> texts, warp_order order) {
  auto result = std::make_unique<program>();
  result->texts = std::move(texts);
  result->files.emplace_back();  // number 0: unknown
  linkage shared;
  for (std::uint32_t n = 0; n < result->texts.size(); ++n) text_parser(*result, shared, n).parse();
  check_calls(*result);
  lay_out_shared(*result);
  verify(*result);
  result->in_lockstep = order == warp_order::lockstep;
  if (result->in_lockstep)
    for (const auto& f : result->functions) insert_convergence(*f);
  return result;
}

}  // namespace hpe::ptx
