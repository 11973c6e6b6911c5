#pragma once

#include <string>

/// The kernel "chain": each block waits until the block after it has set its flag. `flags` has a zero for each block;
/// at the end, each flag is the number of blocks.
inline const std::string waiting_blocks = R"(.version 8.6
.target sm_75
.address_size 64
.visible .entry chain(.param .u64 flags) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [flags];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  add.u32 %r1, %r1, 1;
  setp.eq.u32 %p1, %r1, %r2;
  @%p1 bra last;
again:
  ld.volatile.global.u32 %r3, [%rd1+4];
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra again;
last:
  st.volatile.global.u32 [%rd1], %r2;
  ret;
}
)";
