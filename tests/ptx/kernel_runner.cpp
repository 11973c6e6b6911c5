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

kernel_runner::kernel_runner(std::vector<std::string> texts, engine_kind kind) : program_(parse(std::move(texts))) {
  image_ = std::make_unique<image>(
      program_, [this](std::size_t bytes, std::size_t alignment) { return allocate(bytes, alignment); });
  if (kind == engine_kind::compiler) compiled_ = compile(*image_);
  surroundings_.print = [this](std::string_view text) { printed_ += text; };
  surroundings_.may_touch = [this](std::uint64_t address, std::size_t bytes) { return may_touch(address, bytes); };
  surroundings_.allocate = [this](std::size_t bytes) {
    void* const memory = std::malloc(bytes);
    heap_.emplace_back(reinterpret_cast<std::uint64_t>(memory), bytes);
    return memory;
  };
  surroundings_.release = [this](void* memory) {
    std::erase_if(heap_,
                  [memory](const auto& piece) { return piece.first == reinterpret_cast<std::uint64_t>(memory); });
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
  const auto holds = [&](const auto& piece) {
    return address >= piece.first && address + bytes <= piece.first + piece.second;
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

std::shared_ptr<engine> kernel_runner::make_engine(const function& kernel) {
  if (compiled_) return compiled_->engine_for(kernel);
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
  if (s.together) return run_together([&] { return make_engine(f); }, c);
  return run_blocks(*make_engine(f), c, {0, s.grid.count()});
}

}  // namespace hpe::ptx::test
