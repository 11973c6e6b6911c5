#pragma once

/// Reads the images from which programs load modules at run time: PTX text, fat binaries that contain PTX, and linked
/// images, which hpe's linker (cuLink...) creates from several PTX texts.

#include <string>
#include <string_view>
#include <vector>

namespace hpe::cudart {

/// Returns the PTX texts of an image in memory. The header of a fat binary or of a linked image contains the size of
/// the image, and PTX ends at a zero byte. Does not read beyond the mapped memory, even if the sizes in the image are
/// wrong.
///
/// Throws cudaErrorInvalidValue for null. Throws, with a reason for the log, cudaErrorNoKernelImageForDevice for
/// machine code of GPUs, including a fat binary without PTX, and cudaErrorInvalidKernelImage for a damaged image.
[[nodiscard]] std::vector<std::string> read_image(const void* image);

/// Like read_image(image), for an image with a known size and for a file. `read_whole_file` returns the bytes of a
/// file. The functions with a path also throw cudaErrorFileNotFound, and cudaErrorInvalidKernelImage for a file that is
/// too short to be an image.
[[nodiscard]] std::vector<std::string> read_image(std::string_view image);
[[nodiscard]] std::vector<std::string> read_image_file(const char* path);
[[nodiscard]] std::string read_whole_file(const char* path);

/// Returns a linked image of these PTX texts, which read_image can read. Programs treat the image as machine code,
/// because NVIDIA's linker generates machine code.
[[nodiscard]] std::string make_linked_image(const std::vector<std::string>& texts);

}  // namespace hpe::cudart
