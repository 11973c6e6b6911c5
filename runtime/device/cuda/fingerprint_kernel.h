#pragma once

/// The kernel that computes fingerprints (runtime/device/fingerprint.h) on GPUs, as PTX for all GPUs that hpe supports.

#include <cstdint>

namespace hpe::device::cuda {

inline constexpr const char* fingerprint_kernel_name = "hpe_fingerprint";
/// The variable to which the kernel adds its sums; it must be 0 before the launch.
inline constexpr const char* fingerprint_sums_name = "hpe_fingerprint_sums";
/// The threads of a block: whole warps.
inline constexpr unsigned fingerprint_threads = 256;

struct fingerprint_parameters {
  std::uint64_t source = 0;
  std::uint64_t pairs = 0;
  std::uint64_t first_key = 0;
  std::uint64_t second_key = 0;
};

// Each thread adds every n-th pair, where n is the number of all threads. Then each warp adds up the sums of its
// threads.
inline constexpr const char* fingerprint_ptx = R"(
.version 6.4
.target sm_60
.address_size 64

.global .align 16 .b64 hpe_fingerprint_sums[2];

.visible .entry hpe_fingerprint(
  .param .u64 source, .param .u64 pairs, .param .u64 first_key, .param .u64 second_key)
{
  .reg .pred %p, %q;
  .reg .b32 %id, %lane, %block, %threads, %blocks, %a, %b, %round;
  .reg .b64 %at, %end, %first, %second, %n, %step, %place, %offset;
  .reg .b64 %x, %y, %k, %l, %t, %low, %high, %other;

  ld.param.u64 %at, [source];
  cvta.to.global.u64 %at, %at;
  ld.param.u64 %end, [pairs];
  ld.param.u64 %first, [first_key];
  ld.param.u64 %second, [second_key];
  mov.u32 %id, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %blocks, %nctaid.x;
  mad.lo.u32 %a, %block, %threads, %id;
  cvt.u64.u32 %n, %a;
  mul.lo.u32 %a, %blocks, %threads;
  cvt.u64.u32 %step, %a;
  mov.u64 %low, 0;
  mov.u64 %high, 0;

next:
  setp.ge.u64 %p, %n, %end;
  @%p bra added;
  shl.b64 %offset, %n, 4;
  add.u64 %offset, %at, %offset;
  ld.global.v2.u64 {%x, %y}, [%offset];
  mul.lo.u64 %place, %n, 0x9e3779b97f4a7c15;

  add.u64 %k, %first, %place;
  shr.u64 %t, %k, 30;
  xor.b64 %k, %k, %t;
  mul.lo.u64 %k, %k, 0xbf58476d1ce4e5b9;
  shr.u64 %t, %k, 27;
  xor.b64 %k, %k, %t;
  mul.lo.u64 %k, %k, 0x94d049bb133111eb;
  shr.u64 %t, %k, 31;
  xor.b64 %k, %k, %t;

  add.u64 %l, %second, %place;
  shr.u64 %t, %l, 30;
  xor.b64 %l, %l, %t;
  mul.lo.u64 %l, %l, 0xbf58476d1ce4e5b9;
  shr.u64 %t, %l, 27;
  xor.b64 %l, %l, %t;
  mul.lo.u64 %l, %l, 0x94d049bb133111eb;
  shr.u64 %t, %l, 31;
  xor.b64 %l, %l, %t;

  add.u64 %x, %x, %k;
  add.u64 %y, %y, %l;
  mul.lo.u64 %t, %x, %y;
  add.u64 %low, %low, %t;
  mul.hi.u64 %t, %x, %y;
  add.u64 %high, %high, %t;
  add.u64 %n, %n, %step;
  bra next;

added:
  mov.u32 %round, 16;
fold:
  mov.b64 {%a, %b}, %low;
  shfl.sync.bfly.b32 %a, %a, %round, 31, 0xffffffff;
  shfl.sync.bfly.b32 %b, %b, %round, 31, 0xffffffff;
  mov.b64 %other, {%a, %b};
  add.u64 %low, %low, %other;
  mov.b64 {%a, %b}, %high;
  shfl.sync.bfly.b32 %a, %a, %round, 31, 0xffffffff;
  shfl.sync.bfly.b32 %b, %b, %round, 31, 0xffffffff;
  mov.b64 %other, {%a, %b};
  add.u64 %high, %high, %other;
  shr.u32 %round, %round, 1;
  setp.ne.u32 %p, %round, 0;
  @%p bra fold;

  and.b32 %lane, %id, 31;
  setp.ne.u32 %q, %lane, 0;
  @%q bra end;
  mov.u64 %offset, hpe_fingerprint_sums;
  red.global.add.u64 [%offset], %low;
  red.global.add.u64 [%offset+8], %high;
end:
  ret;
}
)";

}  // namespace hpe::device::cuda
