# Functions for the tests that run hpe in minimal Debian installations; source this file after scripts/common.sh.

# exit_77_without_bare_roots <name>: ends a test as skipped if make_bare_root and in_bare_root cannot work here.
exit_77_without_bare_roots() {
  if ((EUID != 0)) || ! unshare --mount true 2>/dev/null || ! getent hosts deb.debian.org >/dev/null; then
    echo "$1: needs root, its own namespaces and Debian's server"
    exit 77
  fi
}

# use_archive_in <folder> <build>: uses the archive of a build in the bare root, which has g++, pkg-config and Open MPI.
use_archive_in() {
  local root=$1 build=$2
  cp -r "$build"/packages/hpe-*.tar.gz docs/examples tests/install/use_archive "$root/tmp"
  tests/install/readme_program "$root/tmp"
  if [[ -x $build/bin/cudart/small-shared ]]; then cp "$build/bin/cudart/small-shared" "$root/tmp"; fi
  in_bare_root "$root" su --shell /bin/bash --login nobody -c /tmp/use_archive
}

# use_wheel_in <folder> <build>: uses the wheels of a build in the bare root, which has python3-venv and python3-numpy, and reaches PyPI.
use_wheel_in() {
  local root=$1 build=$2
  cp "$build"/packages/*.whl tests/install/use_wheel tests/python/{algorithms,arrays,command,enqueue,exchange,launcher}_test.py "$root/tmp"
  mkdir -p "$root"/tmp/docs/{examples,howto} "$root/tmp/tests/python"
  cp docs/examples/{arrays.ipynb,squares.py} "$root/tmp/docs/examples"
  cp docs/howto/python.md "$root/tmp/docs/howto"
  cp tests/python/page_test.py "$root/tmp/tests/python"
  if [[ -x $build/bin/cudart/small-shared ]]; then cp "$build/bin/cudart/small-shared" "$root/tmp"; fi
  in_bare_root "$root" su --shell /bin/bash --login nobody -c /tmp/use_wheel
}
