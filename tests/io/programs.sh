#!/usr/bin/env bash
# Tests that programs that know nothing of hpe behave the same with hpe preloaded, and that Python can use hpe memory.
#
#   programs.sh LIBHPE
set -euo pipefail
library=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HPE_LOG=warn

with() { LD_PRELOAD=$library "$@"; }

fail() {
  echo "$*" >&2
  exit 1
}

head -c 5000001 /dev/urandom > data
mkdir tree && cp data tree/a && seq 100000 > tree/b && ln -s a tree/c

# both WHAT COMMAND...: fails unless output, errors and exit status are the same with and without hpe.
both() {
  local what=$1 plain=0 preloaded=0
  shift
  "$@" > plain.out 2> plain.err || plain=$?
  with "$@" > with.out 2> with.err || preloaded=$?
  [[ $plain == "$preloaded" ]] || fail "$what ended with $preloaded instead of $plain"
  cmp plain.out with.out || fail "$what: other output"
  cmp plain.err with.err || fail "$what: other errors"
  echo "same: $what"
}

both "cat" cat data
both "cat of a folder" cat .
both "dd" dd if=data bs=4097 count=1000 skip=3 status=none
both "dd, direct" dd if=data bs=4096 count=10 iflag=direct status=none
both "tar" tar --sort=name --mtime=@0 -cf - tree
both "sort" sort -n tree/b
both "a pipe of shells" bash -c 'seq 1000 | while read -r x; do echo "$((x * x))"; done | tail -3'
both "a closed pipe" bash -c 'set -o pipefail; yes | head -n 1'
both "python3" python3 -c '
import os, socket, mmap
data = open("data", "rb").read()
a, b = socket.socketpair()
a.sendall(data[:100000]); assert b.recv(100000, socket.MSG_WAITALL) == data[:100000]
r, w = os.pipe(); os.writev(w, [data[:5], data[5:10]]); print(os.read(r, 100) == data[:10])
print(os.preadv(os.open("data", os.O_RDONLY), [bytearray(10)], 3), len(os.urandom(20)))
print(open("tree/b").readlines()[-1])'
with tar --sort=name -cf with.tar tree && mkdir out && with tar -xf with.tar -C out
diff -r --no-dereference tree out/tree || fail "tar did not restore the files that it packed"

# Python's own functions use hpe memory, which Python allocates through the C interface.
with python3 - "$library" <<'END' || fail "python3 on hpe memory"
import ctypes, os, socket, sys
hpe = ctypes.CDLL(sys.argv[1])
hpe.hpeMemset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
size = os.path.getsize("data")
p = ctypes.c_void_p()
assert hpe.hpeMalloc(ctypes.byref(p), ctypes.c_size_t(size + 10)) == 0
assert hpe.hpeMemset(p, 7, size + 10) == 0
memory = (ctypes.c_char * (size + 10)).from_address(p.value)
view = memoryview(memory).cast("B")
with open("data", "rb", buffering=0) as f:
    assert f.readinto(view[:size]) == size
data = open("data", "rb").read()
assert hpe.hpeSynchronize() == 0
with open("copy", "wb", buffering=0) as f:
    assert f.write(view) == size + 10
assert open("copy", "rb").read() == data + bytes([7] * 10)
a, b = socket.socketpair()
a.send(view[:1000]); assert b.recv(1000) == data[:1000]
b.send(b"x" * 500); assert a.recv_into(view[100:600]) == 500
assert bytes(view[99:601]) == data[99:100] + b"x" * 500 + data[600:601]
END
echo "python3 reads and writes hpe memory"
