#include "interpose/cuda/oversubscribed/memory_box.h"

#include <algorithm>
#include <limits>

namespace hpe::cuda_hooks {

namespace {

constexpr std::size_t too_much = std::numeric_limits<std::size_t>::max();

std::size_t sum(std::size_t a, std::size_t b) noexcept {
  std::size_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? too_much : result;
}

std::size_t product(std::size_t a, std::size_t b) noexcept {
  std::size_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? too_much : result;
}

// How many of `count` things of `each` bytes, which begin `step` bytes after each other, lie in `most` bytes.
std::size_t fitting(std::size_t count, std::size_t each, std::size_t step, std::size_t most) noexcept {
  if (each > most) return 0;
  return step == 0 ? count : std::min(count, 1 + (most - each) / step);
}

}  // namespace

CUdeviceptr begin_of(const box_place& place, const box_part& part) noexcept {
  return place.base + part.z * place.slice + part.y * place.pitch + part.x;
}

std::size_t extent_of(const box_place& place, const box_part& part) noexcept {
  return sum(product(part.depth - 1, place.slice), sum(product(part.height - 1, place.pitch), part.width));
}

CUresult for_each_part(const std::vector<box_place>& places, const box_part& whole, std::size_t most,
                       const std::function<CUresult(const box_part&)>& visit) {
  std::size_t planes = whole.depth, rows = whole.height;
  for (const box_place& each : places) {
    box_part plane = whole;
    plane.depth = 1;
    planes = std::min(planes, fitting(whole.depth, extent_of(each, plane), each.slice, most));
    rows = std::min(rows, fitting(whole.height, whole.width, each.pitch, most));
  }
  box_part step = whole;
  step.depth = std::max<std::size_t>(planes, 1);
  if (planes == 0) step.height = std::max<std::size_t>(rows, 1);
  if (planes == 0 && rows == 0) step.width = most;
  box_part part = whole;
  for (std::size_t z = 0; z < whole.depth; z += step.depth)
    for (std::size_t y = 0; y < whole.height; y += step.height)
      for (std::size_t x = 0; x < whole.width; x += step.width) {
        part = {whole.x + x,
                whole.y + y,
                whole.z + z,
                std::min(step.width, whole.width - x),
                std::min(step.height, whole.height - y),
                std::min(step.depth, whole.depth - z)};
        if (const CUresult result = visit(part); result != CUDA_SUCCESS) return result;
      }
  return CUDA_SUCCESS;
}

}  // namespace hpe::cuda_hooks
