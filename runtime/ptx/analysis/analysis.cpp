#include "runtime/ptx/analysis/analysis.h"

#include <algorithm>
#include <set>

#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx::analysis {

namespace {

// Returns the kernel and all functions that it may call, directly or through other functions. A call through a pointer
// may call any function of the program that is not a kernel.
std::vector<const function*> functions_of(const program& p, const function& kernel) {
  std::vector<const function*> all{&kernel};
  std::set<const function*> seen{&kernel};
  const auto add = [&](const function& f) {
    if (f.is_defined && seen.insert(&f).second) all.push_back(&f);
  };
  for (std::size_t n = 0; n < all.size(); ++n) {  // NOLINT(modernize-loop-convert): the list grows
    for (const instruction& i : all[n]->code) {
      if (i.kind != kind::call) continue;
      if (i.sources.empty()) {
        add(*p.functions[i.callee]);
      } else {
        for (const auto& f : p.functions)
          if (!f->is_kernel) add(*f);
      }
    }
  }
  return all;
}

bool uses_other_memory(const program& p, const function& f) {
  return std::ranges::any_of(f.code, [&](const instruction& i) {
    return i.kind == kind::texture ||
           (i.kind == kind::call && i.sources.empty() && p.functions[i.callee]->system_call == builtin::device_runtime);
  });
}

class array_collector {
 public:
  array_collector(kernel_walk& walk, const dependences& known) : walk_(walk), table_(walk.table()), known_(known) {}

  std::vector<array_use> run(const std::vector<access>& accesses) {
    for (const access& a : accesses) {
      if (a.inside != nullptr) {
        count(at({}), a);
        at({}).how = address_class::data_dependent;
        continue;
      }
      std::set<std::optional<quantity_id>> bases;
      for (const address_form& f : a.forms) {
        array_use& array = at(f.base);
        if (bases.insert(f.base).second) count(array, a);
        array.how = std::max(array.how, f.how);
        add(array, a, f);
      }
    }
    for (array_use& array : all_)
      for (access_pattern& p : array.patterns) sort(p.offsets);
    for (array_use& array : all_)
      for (access_pattern& p : array.patterns) find_neighbours(p);
    // Sorts parameters by their offsets, then variables, then the accesses with unknown base.
    const auto place = [this](const array_use& a) {
      if (!a.base) return std::pair(~0U, 0U);
      return std::pair(static_cast<std::uint32_t>(table_.of(*a.base).what), table_.of(*a.base).number);
    };
    std::stable_sort(all_.begin(), all_.end(),
                     [&](const array_use& a, const array_use& b) { return place(a) < place(b); });
    return std::move(all_);
  }

 private:
  array_use& at(std::optional<quantity_id> base) {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const array_use& a) { return a.base == base; });
    if (found != all_.end()) return *found;
    all_.emplace_back().base = base;
    return all_.back();
  }

  static void count(array_use& array, const access& a) {
    array.element = std::max(array.element, a.bytes);
    if (a.what == access_kind::read) ++array.reads;
    if (a.what == access_kind::write) ++array.writes;
    if (a.what == access_kind::atomic) ++array.updates;
  }

  void add(array_use& array, const access& a, const address_form& f) {
    const std::uint32_t block = walk_.flow().block_at(a.position);
    polynomial local, offset;
    for (const term& t : table_.at(f.rest)) {
      dependence d;
      for (std::size_t n = 0; n < t.of.count; ++n) d.unite(known_.of_quantity(t.of.factors[n], block));
      (d.is_uniform() ? offset : local).push_back(t);
    }
    const expression_id moved = table_.intern(std::move(offset)), rest = table_.intern(std::move(local));
    auto found = std::find_if(array.patterns.begin(), array.patterns.end(), [&](const access_pattern& p) {
      return p.blocks == f.blocks && p.local == rest && p.how == f.how;
    });
    if (found == array.patterns.end()) {
      found = array.patterns.insert(found, access_pattern{});
      found->blocks = f.blocks;
      found->local = rest;
      found->how = f.how;
    }
    if (std::find(found->offsets.begin(), found->offsets.end(), moved) == found->offsets.end())
      found->offsets.push_back(moved);
    found->reads |= a.what == access_kind::read;
    found->writes |= a.what == access_kind::write;
    if (a.what == access_kind::write && !found->written) found->written = moved;
    found->updates |= a.what == access_kind::atomic;
  }

  void find_neighbours(access_pattern& p) {
    expression_id from = p.offsets.front();
    for (const array_use& array : all_)
      for (const access_pattern& other : array.patterns)
        if (other.written && other.blocks == p.blocks && other.local == p.local) from = *other.written;
    for (const expression_id offset : p.offsets)
      if (const auto difference = table_.sum(offset, from, -1)) p.neighbours.push_back(*difference);
    sort(p.neighbours);
  }

  // Sorts constants in ascending order, before all other expressions.
  void sort(std::vector<expression_id>& offsets) const {
    std::stable_sort(offsets.begin(), offsets.end(), [this](expression_id a, expression_id b) {
      const auto x = table_.constant_of(a), y = table_.constant_of(b);
      if (x && y) return *x < *y;
      return x.has_value() && !y.has_value();
    });
  }

  kernel_walk& walk_;
  expressions& table_;
  const dependences& known_;
  std::vector<array_use> all_;
};

std::array<bool, 3> axes_of(const std::vector<const function*>& functions) {
  std::array<bool, 3> axes{};
  for (const function* const f : functions) {
    for (const instruction& i : f->code) {
      if (i.kind != kind::special) continue;
      const auto axis =
          static_cast<std::uint64_t>(i.sources[0].value) - static_cast<std::uint64_t>(special_register::ctaid_x);
      if (axis < axes.size()) axes[axis] = true;
    }
  }
  return axes;
}

}  // namespace

bool array_use::is_cut_by(unsigned axis) const {
  bool moves = false;
  for (const access_pattern& p : patterns) {
    const bool with_block = p.how == address_class::affine && p.blocks[axis] != 0;
    const bool is_single = p.how == address_class::local && p.local == 0 && !p.writes && !p.updates;
    if (!with_block && !is_single) return false;
    moves |= with_block;
  }
  return moves;
}

kernel_analysis analyse(const program& p, const function& kernel) {
  kernel_analysis result;
  result.kernel = &kernel;
  const std::vector<const function*> functions = functions_of(p, kernel);
  std::vector<std::unique_ptr<kernel_walk>> walks;
  std::vector<std::vector<access>> accesses;
  for (const function* const f : functions) {
    walks.push_back(std::make_unique<kernel_walk>(*f));
    auto known = std::make_unique<dependences>(*walks.back());
    accesses.push_back(find_accesses(p, *f, *walks.back(), *known));
    if (f == &kernel) result.known = std::move(known);
  }
  std::vector<analysed_function> analysed;
  for (std::size_t n = 0; n < functions.size(); ++n) analysed.push_back({functions[n], walks[n].get(), &accesses[n]});
  result.verdict = judge(p, analysed);
  result.axes = axes_of(functions);
  for (const function* const f : functions)
    if (result.left_out.empty()) result.left_out = f->left_out;
  result.uses_other_memory = !result.left_out.empty() || std::ranges::any_of(functions, [&](const function* f) {
    return uses_other_memory(p, *f);
  });
  for (std::size_t n = 0; n < functions.size(); ++n) {
    for (access& a : accesses[n]) {
      if (n > 0) {
        a.inside = functions[n];
        a.how = address_class::data_dependent;
        a.forms.clear();
        a.where.clear();
      }
      result.accesses.push_back(std::move(a));
    }
  }
  result.walk = std::move(walks[0]);
  result.arrays = array_collector(*result.walk, *result.known).run(result.accesses);
  for (const flow_loop& l : result.walk->flow().loops()) {
    const instruction& first = kernel.code[result.walk->flow().blocks()[l.header].first];
    result.loops.push_back({first.line, first.source_file, first.source_line});
  }
  return result;
}

}  // namespace hpe::ptx::analysis
