#include "tests/ptx/kernel_runner.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hpe::ptx::test {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no file " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

namespace {

std::unique_ptr<program> parse_and_record(std::vector<std::string> texts, warp_order order,
                                          const record_places* recorded, recorded_reads reads) {
  auto made = parse(std::move(texts), order);
  if (recorded != nullptr) record_accesses(*made, *recorded, reads);
  return made;
}

}  // namespace

kernel_runner::kernel_runner(std::vector<std::string> texts, engine_kind kind, warp_order order,
                             const kernel_store& kept, const record_places* recorded, recorded_reads reads)
    : program_(parse_and_record(std::move(texts), order, recorded, reads)),
      hands_over_(kind == engine_kind::handed_over) {
  image_ = std::make_unique<image>(
      program_, [this](std::size_t bytes, std::size_t alignment) { return allocate(bytes, alignment); });
  const bool compiles = kind == engine_kind::compiler || hands_over_ || kind == engine_kind::compiler_in_parts;
  if (compiles) compiled_ = compile(*image_, kept);
  if (kind == engine_kind::interpreter_in_parts || kind == engine_kind::compiler_in_parts) make_parts(compiles, order);
  surroundings_.print = [this](std::string_view text) { printed_ += text; };
  surroundings_.may_touch = [this](std::uint64_t address, std::size_t bytes) { return may_touch(address, bytes); };
  surroundings_.allocate = [this](std::size_t bytes) {
    void* const memory = std::malloc(bytes);
    heap_.emplace_back(reinterpret_cast<std::uint64_t>(memory), bytes);
    return memory;
  };
  surroundings_.release = [this](void* memory) {
    std::erase_if(heap_,
                  [memory](const auto& range) { return range.first == reinterpret_cast<std::uint64_t>(memory); });
    std::free(memory);
  };
}

void* kernel_runner::allocate(std::size_t bytes, std::size_t alignment) {
  owned_.push_back(std::make_unique<std::uint8_t[]>(bytes + alignment));
  const auto at = reinterpret_cast<std::uint64_t>(owned_.back().get());
  const std::uint64_t aligned = (at + alignment - 1) / alignment * alignment;
  memory_.emplace_back(aligned, bytes);
  return reinterpret_cast<void*>(aligned);
}

bool kernel_runner::may_touch(std::uint64_t address, std::size_t bytes) const {
  const auto holds = [&](const auto& range) {
    return address >= range.first && address + bytes <= range.first + range.second;
  };
  return std::any_of(memory_.begin(), memory_.end(), holds) || std::any_of(heap_.begin(), heap_.end(), holds);
}

void* kernel_runner::address_of(const std::string& variable) const {
  const symbol* const s = program_->find_symbol(variable);
  if (s == nullptr) throw std::runtime_error("no variable " + variable);
  return reinterpret_cast<void*>(image_->address_of(static_cast<std::uint32_t>(s - program_->symbols.data())));
}

const function& kernel_runner::find(const std::string& kernel) const {
  const function* const f = program_->find_kernel(kernel);
  if (f == nullptr) throw std::runtime_error("no kernel " + kernel);
  return *f;
}

std::shared_ptr<execution_engine> kernel_runner::make_engine(const launch_configuration& c) {
  if (compiled_) return compiled_->engine_for(*c.kernel, c.block);
  return std::make_shared<interpreter>(*program_);
}

std::optional<trap> kernel_runner::launch_with(const function& f, const shape& s, const void* parameters) {
  launch_configuration c;
  c.image = image_.get();
  c.kernel = &f;
  c.grid = s.grid;
  c.block = s.block;
  c.dynamic_shared = s.dynamic_shared;
  c.parameters = parameters;
  c.cluster = s.cluster;
  c.surroundings = &surroundings_;
  if (parts_ != nullptr && !s.together && !s.cluster)
    if (const auto* const kernel = parts_->module.find(f.name); kernel != nullptr && kernel->obstacles.empty())
      return launch_in_parts(*kernel, c);
  if (compiled_ == nullptr) c.races = &report_for(f);
  const std::uint64_t blocks = s.grid.count(), range = s.range == 0 ? blocks : s.range;
  std::uint64_t next = 0;
  const auto more = [&] {
    const block_range found{next, std::min(blocks, next + range)};
    next = found.end;
    return found.begin == found.end ? std::nullopt : std::optional(found);
  };
  if (hands_over_ && !s.together && !s.cluster && can_hand_over(*program_, f)) {
    const std::uint64_t most = random_() % 8 << random_() % 12;
    return kernel_trial(*image_, f, *compiled_, most).run(c, {0, 0}, more);
  }
  auto stopped =
      s.together ? run_together([&] { return make_engine(c); }, c) : run_blocks(*make_engine(c), c, {0, 0}, more);
  if (compiled_ == nullptr && !allows_races_)
    for (const std::string& race : c.races->take()) throw std::runtime_error(race);
  return stopped;
}

race_report& kernel_runner::report_for(const function& kernel) {
  auto& report = races_[&kernel];
  if (report == nullptr) report = std::make_unique<race_report>(*program_, kernel);
  return *report;
}

void kernel_runner::make_parts(bool compile_them, warp_order order) {
  std::vector<analysis::kernel_analysis> analyses;
  for (const auto& f : program_->functions)
    if (f->is_kernel && f->is_defined) analyses.push_back(analysis::analyse(*program_, *f));
  std::vector<const analysis::kernel_analysis*> pointers;
  pointers.reserve(analyses.size());
  for (const auto& a : analyses) pointers.push_back(&a);
  auto made = std::make_unique<program_of_parts>();
  made->module = patch::patch(*program_, pointers);
  if (!made->module.texts.empty()) {
    made->program = parse(made->module.texts, order);
    made->image = std::make_unique<image>(
        made->program, [this](std::size_t bytes, std::size_t alignment) { return allocate(bytes, alignment); });
    if (compile_them) made->compiled = compile(*made->image);
    for (const patch::variable_table& t : made->module.tables) {
      const symbol* const table = made->program->find_symbol(t.name);
      const auto at = made->image->address_of(static_cast<std::uint32_t>(table - made->program->symbols.data()));
      for (std::size_t n = 0; n < t.variables.size(); ++n) reinterpret_cast<void**>(at)[n] = address_of(t.variables[n]);
    }
  }
  parts_ = std::move(made);
}

// Cuts the grid at random positions along each axis, and runs the parts in random order.
std::optional<trap> kernel_runner::launch_in_parts(const patch::patched_kernel& kernel, launch_configuration c) {
  const auto& program = *parts_->program;
  for (const std::string& name : parts_->module.constants) {
    const symbol* const s = program.find_symbol(name);
    std::memcpy(
        reinterpret_cast<void*>(parts_->image->address_of(static_cast<std::uint32_t>(s - program.symbols.data()))),
        address_of(name), s->size);
  }
  patch::grid_part part;
  part.grid = {c.grid.x, c.grid.y, c.grid.z};
  std::array<std::vector<std::uint32_t>, 3> ends;
  for (unsigned axis = 0; axis < 3; ++axis)
    for (std::uint32_t at = 0; at < part.grid[axis];)
      ends[axis].push_back(at += 1 + parts_->random() % (part.grid[axis] - at));
  struct grid_box {
    std::array<std::uint32_t, 3> first, count;
  };
  std::vector<grid_box> boxes;
  const auto begin_of = [&](unsigned axis, std::size_t n) { return n == 0 ? 0 : ends[axis][n - 1]; };
  for (std::size_t z = 0; z < ends[2].size(); ++z)
    for (std::size_t y = 0; y < ends[1].size(); ++y)
      for (std::size_t x = 0; x < ends[0].size(); ++x) {
        const std::array<std::uint32_t, 3> first{begin_of(0, x), begin_of(1, y), begin_of(2, z)};
        boxes.push_back({first, {ends[0][x] - first[0], ends[1][y] - first[1], ends[2][z] - first[2]}});
      }
  std::shuffle(boxes.begin(), boxes.end(), parts_->random);
  const function& f = *program.find_kernel(kernel.name);
  std::vector<std::uint8_t> parameters(f.formals_size + 16);
  std::memcpy(parameters.data(), c.parameters, kernel.part_offset);
  for (const grid_box& p : boxes) {
    part.first = p.first;
    std::memcpy(parameters.data() + kernel.part_offset, &part, sizeof part);
    c.image = parts_->image.get();
    c.kernel = &f;
    c.grid = {p.count[0], p.count[1], p.count[2]};
    c.parameters = parameters.data();
    const std::shared_ptr<execution_engine> runs =
        parts_->compiled ? parts_->compiled->engine_for(f, c.block) : std::make_shared<interpreter>(program);
    if (auto stopped = run_blocks(*runs, c, {0, c.grid.count()})) {
      stopped->block = {stopped->block.x + p.first[0], stopped->block.y + p.first[1], stopped->block.z + p.first[2]};
      return stopped;
    }
  }
  return std::nullopt;
}

}  // namespace hpe::ptx::test
