#pragma once

/// Instructions on texture and surface objects, for both the interpreter and compiled code.

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// The indices of the sources of an instruction on a texture or surface. The sources are the object; then layer, x, y
/// and z, each 0 if the geometry has no such coordinate; then the values to store, or the level of a read, or its two
/// gradients.
inline constexpr std::size_t texture_layer = 1;
inline constexpr std::size_t texture_x = 2;
inline constexpr std::size_t first_surface_value = 5;
inline constexpr std::size_t texture_level_of_detail = 5;
inline constexpr std::size_t first_texture_gradient = 5;
inline constexpr std::size_t most_texture_sources = first_texture_gradient + 6;
inline constexpr std::size_t most_texture_results = 4;

/// Executes tex, tld4, suld, sust, txq or suq. `sources` are the raw values of i.sources; `results` receives one value
/// for each of i.results. Stops the kernel if the object is 0, or if an access outside of a surface must trap.
void access_texture(block_context& block, std::uint32_t thread, const instruction& i, const std::uint64_t* sources,
                    std::uint64_t* results);

}  // namespace hpe::ptx
