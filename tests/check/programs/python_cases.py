"""Programs of the Python package hpe with one defect each; cases.h describes the comments. python_cases.py wrong|right
[CASE...]"""

import sys

import hpe

COUNT = 1024
CASES = {}
TEXT = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from) {
  .reg .b32 %r<6>;
  .reg .b64 %a<5>;
  ld.param.u64 %a0, [to];
  ld.param.u64 %a1, [from];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %a2, %r5, 4;
  add.s64 %a3, %a0, %a2;
  add.s64 %a4, %a1, %a2;
  ld.global.u32 %r1, [%a4];
  st.global.u32 [%a3], %r1;
  ret;
}
"""


def case(function):
    CASES[function.__name__] = function
    return function


@case  # undeclared-write copy
def declared_as_read_and_written(wrong):
    x, y = hpe.zeros(COUNT, "int32"), hpe.zeros(COUNT, "int32")
    copy = hpe.Kernel(TEXT, "copy")
    copy(COUNT // 256, 256, (y, x), reads=[x, y] if wrong else [x])  # FIRST
    hpe.synchronize()


@case  # undeclared-read copy
def declared_as_overwritten_and_read(wrong):
    x, y = hpe.zeros(COUNT, "int32"), hpe.zeros(COUNT, "int32")
    copy = hpe.Kernel(TEXT, "copy")
    copy(COUNT // 256, 256, (y, x), overwrites=[x] if wrong else [y])  # FIRST
    hpe.synchronize()


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        CASES[name](sys.argv[1] == "wrong")
