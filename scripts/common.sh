# What the other scripts share. Sourced, never run; after it the working directory is the root of the repository.
set -euo pipefail
export LC_ALL=C.UTF-8

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# How many compilers may run at once: one for each core, fewer where memory is short (1.5 GiB each).
parallel_jobs() {
  local cores available_mib fitting
  cores=$(nproc)
  available_mib=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  fitting=$((available_mib / 1536))
  if ((fitting < 1)); then fitting=1; fi
  echo $((fitting < cores ? fitting : cores))
}

# The C and C++ files of the project with these name endings, one on each line.
source_files() {
  local names=() ending
  for ending in "$@"; do names+=(-o -name "*.$ending"); done
  find include runtime interpose kernels apps tests bench docs -type f \( "${names[@]:1}" \) | sort
}

heading() { printf '\n== %s\n' "$*"; }
