#pragma once

namespace stand_in {

/// The PTX of the kernel `add`: to[n] = from[n] + value, for each n that is a multiple of `stride`.
inline constexpr const char* add_code = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 to, .param .u64 from, .param .u32 value, .param .u32 stride)
{
  .reg .u32 %r<9>;
  .reg .u64 %d<7>;
  ld.param.u64 %d1, [to];
  ld.param.u64 %d2, [from];
  ld.param.u32 %r1, [value];
  ld.param.u32 %r2, [stride];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  mul.lo.u32 %r6, %r6, %r2;
  mul.wide.u32 %d3, %r6, 4;
  add.u64 %d4, %d1, %d3;
  add.u64 %d5, %d2, %d3;
  ld.global.u32 %r7, [%d5];
  add.u32 %r8, %r7, %r1;
  st.global.u32 [%d4], %r8;
  ret;
}
)";

}  // namespace stand_in
