#pragma once

/// Facts about this process: the files that are installed with its code, and its rank in an MPI job.

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "hpe/hpe.h"

namespace hpe {

/// The folders in which to look for files that are installed with this code: the folder of the library or program that
/// contains this code, and the folder of the running program.
[[nodiscard]] std::vector<std::string> own_folders();

/// Finds the file `name` in the folders `relative` to each of own_folders(). If the file does not exist in any of them,
/// throws an error with the status `missing`. The error's message names the searched folders and the option `option`,
/// with which users can name the file.
[[nodiscard]] std::string find_own_file(const std::string& name, std::initializer_list<const char*> relative,
                                        hpeStatus missing, const char* option);

/// Loads hpe's own library `name` with RTLD_LOCAL. Searches each of own_folders(), then `../lib` relative to that
/// folder, and finally the folders that the dynamic linker searches. Returns the handle from dlopen. If the library
/// cannot be loaded, returns nullptr, and dlerror() returns the reason.
[[nodiscard]] void* open_own_library(const char* name);

/// The folder of hpe's files that users may delete at any time: $XDG_CACHE_HOME/hpe or ~/.cache/hpe. Empty if neither
/// XDG_CACHE_HOME nor HOME is an absolute path. The folder need not exist.
[[nodiscard]] std::filesystem::path own_cache_folder();

/// The environment variables in which mpirun and Slurm pass a process its rank; the first variable that is set is used.
inline constexpr std::array rank_variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

/// The rank of this process in its MPI job, from the environment that mpirun or Slurm sets; nullptr if neither started
/// the process.
[[nodiscard]] const char* rank_by_environment() noexcept;

/// The name of an output file of this process for which the user has asked by the name `wanted`: %p stands for the
/// process ID. If the name does not contain %p, a rank of an MPI job inserts its rank before the name's ending. A
/// device or FIFO keeps its name.
[[nodiscard]] std::string name_of_output(const std::string& wanted);
/// The same, for any process. `rank`: nullptr if the process is in no MPI job.
[[nodiscard]] std::string name_of_output(const std::string& wanted, int process, const char* rank);

/// The time that a file would have which is written now, in nanoseconds since 1970.
[[nodiscard]] std::uint64_t time_of_files();
/// The time at which this process was created, in nanoseconds since 1970. exec does not change this time. Up to 10 ms
/// too early; the present time if the system does not tell.
[[nodiscard]] std::uint64_t start_of_own_process();

}  // namespace hpe
