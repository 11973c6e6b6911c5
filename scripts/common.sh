# Common functions of the scripts, which source this file. Changes the working directory to the root of the repository.
set -euo pipefail
export LC_ALL=C.UTF-8

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Prints the number of compilers that may run at the same time: one for each core, or fewer if memory is short (1.5 GiB for each
# compiler).
parallel_jobs() {
  local cores available_mib fitting
  cores=$(nproc)
  available_mib=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  fitting=$((available_mib / 1536))
  if ((fitting < 1)); then fitting=1; fi
  echo $((fitting < cores ? fitting : cores))
}

# Prints the C and C++ files of the project with the given file name extensions, one on each line.
source_files() {
  local names=() ending
  for ending in "$@"; do names+=(-o -name "*.$ending"); done
  find include runtime interpose kernels apps tests bench docs -type f \( "${names[@]:1}" \) | sort
}

heading() { printf '\n== %s\n' "$*"; }

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# install_missing <Debian packages>: installs the packages that are missing.
install_missing() {
  local package missing=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == "install ok installed" ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    echo "$0: cannot install missing packages without root or sudo. As root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  heading "Installing ${missing[*]}"
  # Scripts that run at the same time wait for each other; apt-get itself does not wait for all of its locks.
  as_root flock /var/lib/dpkg apt-get update -q
  as_root flock /var/lib/dpkg env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
}

# make_bare_root [--release NAME] <folder> [<Debian packages>]: creates a minimal Debian system (by default bookworm) with these
# packages in a folder. Needs root.
make_bare_root() {
  local release=bookworm root packages
  if [[ $1 == --release ]]; then
    release=$2
    shift 2
  fi
  root=$1
  shift
  packages=$(IFS=,; echo "ca-certificates${*:+,$*}")
  install_missing debootstrap
  heading "A bare Debian, $release, in $root"
  debootstrap --variant=minbase --include="$packages" "$release" "$root" >"$root.log" || { cat "$root.log"; return 1; }
  cp /etc/resolv.conf "$root/etc"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"  # a mirror of a package registry may use its own certificate
}

# in_bare_root <folder> <command>...: runs a command in the minimal Debian system in this folder, with an empty environment. The
# mounts are in a mount namespace that ends with the command.
in_bare_root() {
  env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin unshare --mount bash -c '
    for folder in dev proc sys; do mount --rbind "/$folder" "$1/$folder"; done
    exec chroot "$@"' bash "$@"
}
