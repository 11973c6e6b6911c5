#pragma once

namespace hpe::libcuda {

/// The PTX of those functions in CUDA's device runtime that synchronise a grid. Compilers other than nvcc (such as
/// Numba's) generate calls of these functions; nvcc generates the same code inline for cooperative groups. The barrier
/// is the same as in cooperative groups: a word at offset 4 of the memory to which %envreg1 and %envreg2 point in a
/// cooperative launch. The first block adds 2^31 minus the number of all other blocks to the word, and each other block
/// adds 1. So the highest bit of the word changes when all blocks have arrived.
inline constexpr const char* grid_barrier_text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .b64 %one;
  mov.u64 %one, 1;
  st.param.b64 [handle], %one;
  ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %a<4>;
  mov.u32 %r1, %envreg2;
  mov.u32 %r2, %envreg1;
  mov.b64 %a1, {%r1, %r2};
  setp.ne.u64 %p1, %a1, 0;
  @%p1 bra cooperative;
  trap;
cooperative:
  barrier.sync 0;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  or.b32 %r1, %r1, %r2;
  mov.u32 %r2, %tid.z;
  or.b32 %r1, %r1, %r2;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra arrived;
  mov.u32 %r1, %nctaid.x;
  mov.u32 %r2, %nctaid.y;
  mul.lo.u32 %r1, %r1, %r2;
  mov.u32 %r2, %nctaid.z;
  mul.lo.u32 %r1, %r1, %r2;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ctaid.y;
  or.b32 %r3, %r3, %r4;
  mov.u32 %r4, %ctaid.z;
  or.b32 %r3, %r3, %r4;
  setp.eq.u32 %p2, %r3, 0;
  mov.u32 %r5, 0x80000001;
  sub.u32 %r5, %r5, %r1;
  selp.b32 %r5, %r5, 1, %p2;
  add.u64 %a2, %a1, 4;
  atom.add.release.gpu.u32 %r6, [%a2], %r5;
wait:
  ld.acquire.gpu.u32 %r7, [%a2];
  xor.b32 %r7, %r7, %r6;
  setp.ge.s32 %p3, %r7, 0;
  @%p3 bra wait;
arrived:
  barrier.sync 0;
  mov.u32 %r8, 0;
  st.param.b32 [result], %r8;
  ret;
}
)";

}  // namespace hpe::libcuda
