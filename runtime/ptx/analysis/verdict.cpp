// CUDA allows the blocks of a grid to run in any order and at the same time. Therefore several devices can share a grid
// unless its blocks wait for each other or use an object that belongs to one device, such as a heap. In a spread
// kernel, atomic operations and fences must apply to all devices.

#include "runtime/ptx/analysis/verdict.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/ptx/analysis/block_waits.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx::analysis {

namespace {

class judge_of_function {
 public:
  judge_of_function(const program& p, const analysed_function& f, verdict& v)
      : program_(p), function_(*f.what), walk_(*f.walk), accesses_(*f.accesses), verdict_(v) {}

  void run() {
    if (!function_.left_out.empty()) add(verdict_.obstacles, "hpe does not know its code: " + function_.left_out);
    look_at_variables();
    for (const std::uint32_t b : walk_.flow().order())
      for (std::uint32_t n = walk_.flow().blocks()[b].first; n < walk_.flow().blocks()[b].last; ++n) look(n);
    if (!walk_.is_complete()) return add(verdict_.obstacles, "its control flow is too irregular for the analysis");
    if (!verdict_.obstacles.empty()) return;
    for (std::uint32_t l = 0; l < walk_.flow().loops().size(); ++l) look_at_loop(l);
  }

 private:
  static void add(std::vector<std::string>& to, const std::string& what) {
    if (std::find(to.begin(), to.end(), what) == to.end()) to.push_back(what);
  }

  void look(std::uint32_t position) {
    const instruction& i = function_.code[position];
    std::vector<std::string>& no = verdict_.obstacles;
    switch (i.kind) {
      case kind::special: return look_at_register(static_cast<special_register>(i.sources[0].value));
      case kind::texture: return add(no, "it uses textures or surfaces, whose handles belong to one device");
      case kind::call:
        if (!i.sources.empty()) return add(no, "it calls a function through a pointer");
        if (const builtin b = program_.functions[i.callee]->system_call;
            b == builtin::allocate || b == builtin::release)
          add(no, "it allocates memory in the kernel (malloc), and each device has a separate heap");
        else if (b == builtin::device_runtime)
          add(no, "it calls CUDA's device runtime, whose work belongs to one device");
        return;
      case kind::atomic:
        if (is_shared(i) || has_block_scope(i)) return;
        if (!i.has(modifier::sys)) ++verdict_.atomics;
        return;
      case kind::fence:
        if (reaches_device(i) && !i.has(modifier::sys)) ++verdict_.fences;
        return;
      case kind::load:
      case kind::store:
        if (i.has(modifier::shared_cluster)) add(no, in_clusters);
        if (is_ordered(i) && !is_shared(i) && !has_block_scope(i) && !i.has(modifier::sys)) ++verdict_.ordered_accesses;
        return;
      case kind::barrier:
        if (i.has(modifier::cluster)) add(no, in_clusters);
        return;
      case kind::routine:
        if (i.op == opcode::mapa || i.op == opcode::getctarank || i.has(modifier::multicast)) add(no, in_clusters);
        return;
      case kind::pure:
        if (i.op == opcode::setp && walk_.is_complete()) look_at_comparison(position);
        return;
      default: return;
    }
  }

  void look_at_register(special_register r) {
    using enum special_register;
    std::vector<std::string>& no = verdict_.obstacles;
    if (r == envreg1 || r == envreg2)
      return add(no, "its blocks wait for each other: it synchronises the whole grid (grid.sync)");
    if (r == smid)
      return add(no, "it reads the number of its multiprocessor (%smid), which is not unique among devices");
    if (r >= is_explicit_cluster && r <= cluster_nctarank) add(no, in_clusters);
  }

  void look_at_variables() {
    for (const access& a : accesses_) {
      for (const address_form& f : a.forms) {
        if (!f.base || walk_.table().of(*f.base).what != quantity::kind::variable) continue;
        const symbol& s = program_.symbols[walk_.table().of(*f.base).number];
        if (!s.is_managed && !s.is_only_read())
          add(verdict_.needs, fmt::format("the variable {} in the memory of one device", s.name));
      }
    }
  }

  [[nodiscard]] bool is_atomic_result(quantity_id q) const {
    const quantity& of = walk_.table().of(q);
    return of.what == quantity::kind::result && !of.is_thread && of.number < function_.code.size() &&
           function_.code[of.number].kind == kind::atomic;
  }

  // Finds counters of blocks: the kernel compares the old value of an atomic counter in global memory with an
  // expression that contains the size of the grid.
  void look_at_comparison(std::uint32_t position) {
    const expressions& table = walk_.table();
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}}) {
      const auto counted = table.single_of(walk_.source_of(position, n).of);
      if (!counted || !is_atomic_result(*counted)) continue;
      const instruction& atomic = function_.code[table.of(*counted).number];
      if (is_shared(atomic) || atomic.modifiers.one_of(modifier::op_add, modifier::op_inc) == modifier::count) continue;
      for (const term& t : table.at(walk_.source_of(position, 1 - n).of))
        for (std::size_t k = 0; k < t.of.count; ++k)
          verdict_.counts_blocks |= table.of(t.of.factors[k]).what == quantity::kind::grid_size;
    }
  }

  void look_at_loop(std::uint32_t l) {
    if (const auto wait = find_wait(program_, function_, walk_, accesses_, l))
      add(verdict_.obstacles,
          fmt::format("its blocks wait for each other: a loop repeats until another thread has written a flag or lock "
                      "({})",
                      place(function_.code[*wait], l)));
  }

  // Returns the source position of instruction `i` of the loop. If `i` is from another file than the kernel, such as a
  // header, returns the position of an instruction of the loop that is from the kernel's file, if there is one.
  [[nodiscard]] std::string place(const instruction& i, std::uint32_t loop) const {
    const auto known = std::find_if(function_.code.begin(), function_.code.end(),
                                    [](const instruction& first) { return first.source_line != 0; });
    const instruction* best = &i;
    for (const std::uint32_t b : walk_.flow().loops()[loop].blocks)
      for (std::uint32_t n = walk_.flow().blocks()[b].first; n < walk_.flow().blocks()[b].last; ++n)
        if (best->source_line == 0 || best->source_file != known->source_file) best = &function_.code[n];
    if (best->source_line == 0 || best->source_file != known->source_file) best = &i;
    if (best->source_line == 0 || best->source_file >= program_.files.size()) return fmt::format("PTX line {}", i.line);
    return fmt::format("{}:{}", program_.files[best->source_file], best->source_line);
  }

  static constexpr const char* in_clusters =
      "its blocks work together in clusters, and the blocks of a cluster share memory of one device";

  const program& program_;
  const function& function_;
  kernel_walk& walk_;
  const std::vector<access>& accesses_;
  verdict& verdict_;
};

}  // namespace

verdict judge(const program& p, const std::vector<analysed_function>& functions) {
  verdict v;
  const function& kernel = *functions.front().what;
  if (kernel.needs_cluster || kernel.cluster[0] != 0 || kernel.max_cluster != 0)
    v.obstacles.emplace_back(
        "its blocks work together in clusters, and the blocks of a cluster share memory of one device");
  for (const analysed_function& f : functions) judge_of_function(p, f, v).run();
  if (v.counts_blocks) v.needs.emplace_back("a counter of finished blocks that all devices see");
  if (v.atomics > 0)
    v.needs.push_back(fmt::format("{} atomic operation{} of system scope", v.atomics, v.atomics == 1 ? "" : "s"));
  if (v.fences > 0) v.needs.push_back(fmt::format("{} fence{} of system scope", v.fences, v.fences == 1 ? "" : "s"));
  if (v.ordered_accesses > 0)
    v.needs.push_back(fmt::format("{} ordered load{} or store{} of system scope", v.ordered_accesses,
                                  v.ordered_accesses == 1 ? "" : "s", v.ordered_accesses == 1 ? "" : "s"));
  return v;
}

}  // namespace hpe::ptx::analysis
