#pragma once

/// The instructions that name a texture or a surface object, for interpreter and compiled code alike.

#include "runtime/ptx/block.h"

namespace hpe::ptx {

/// Of such an instruction: the object; the layer and x, y and z, 0 where the geometry has none; the values of a store.
inline constexpr std::size_t texture_layer = 1;
inline constexpr std::size_t texture_x = 2;
inline constexpr std::size_t first_surface_value = 5;
inline constexpr std::size_t most_texture_sources = first_surface_value + 4;
inline constexpr std::size_t most_texture_results = 4;

/// Executes tex, suld, sust, txq or suq: sources are the raw values of i.sources, results gets as many as i.results
/// has. Stops the kernel for an object of 0, and where a surface is left that must not be.
void access_texture(block_context& block, std::uint32_t thread, const instruction& i, const std::uint64_t* sources,
                    std::uint64_t* results);

}  // namespace hpe::ptx
