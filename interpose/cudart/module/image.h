#pragma once

/// The images from which programs load modules at run time: PTX text, fat binaries that contain PTX, and what hpe's linker
/// makes of several PTX texts.

#include <string>
#include <vector>

namespace hpe::cudart {

/// The PTX of an image in memory, which tells its own size: a fat binary or a linked image by its header, PTX by a zero byte
/// at its end. Throws cudaErrorInvalidValue for null, cudaErrorNoKernelImageForDevice for machine code of GPUs, and
/// hpe::error for a fat binary that is damaged or has no PTX.
[[nodiscard]] std::vector<std::string> read_image(const void* image);

/// The same of a file, and its bytes. They throw cudaErrorFileNotFound, and cudaErrorInvalidKernelImage for a file that is too
/// short for an image.
[[nodiscard]] std::vector<std::string> read_image_file(const char* path);
[[nodiscard]] std::string read_whole_file(const char* path);

/// An image of PTX texts that read_image reads: programs take it for machine code, as that is what NVIDIA's linker makes.
[[nodiscard]] std::string make_linked_image(const std::vector<std::string>& texts);

}  // namespace hpe::cudart
