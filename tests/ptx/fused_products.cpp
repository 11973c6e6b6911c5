// Sums and differences of products are rounded once, as on GPUs, if neither instruction says its rounding and only sums
// read the product.

#include <cmath>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using FusedProducts = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

// out[0] and out[1] = %f5 and %f6, which `body` computes from a, b, c and d in %f1 to %f4.
std::string kernel_of(std::string body, bool is_double) {
  body = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .f32 a, .param .f32 b, .param .f32 c, .param .f32 d) {
  .reg .b64 %rd<3>;
  .reg .f32 %f<9>;
  .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [a];
  ld.param.f32 %f2, [b];
  ld.param.f32 %f3, [c];
  ld.param.f32 %f4, [d];
  mov.f32 %f6, %f1;
  )" + body +
         R"(
  st.global.f32 [%rd1], %f5;
  st.global.f32 [%rd1+)" +
         (is_double ? "8" : "4") + R"(], %f6;
  ret;
}
)";
  for (std::size_t at = 0; is_double && (at = body.find("f32", at)) != std::string::npos; at += 3) {
    body[at + 1] = '6';
    body[at + 2] = '4';
  }
  return body;
}

template <class T>
struct sums {
  std::string body;
  T first, second;
};

template <class T>
std::vector<sums<T>> all_sums(T a, T b, T c, T d) {
  const T product = a * b, other = c * d;  // rounded
  return {
      {"mul.f32 %f7, %f1, %f2; add.f32 %f5, %f7, %f3; sub.f32 %f6, %f7, %f3;", std::fma(a, b, c), std::fma(a, b, -c)},
      {"mul.f32 %f7, %f1, %f2; add.f32 %f5, %f3, %f7; sub.f32 %f6, %f3, %f7;", std::fma(a, b, c), std::fma(-a, b, c)},
      {"mul.f32 %f7, %f1, %f2; mul.f32 %f8, %f3, %f4; add.f32 %f5, %f7, %f8; sub.f32 %f6, %f7, %f8;",
       std::fma(c, d, product), std::fma(a, b, -other)},
      {"mul.f32 %f7, %f1, %f2; setp.gt.f32 %p, %f7, %f3; @%p add.f32 %f6, %f7, %f3; sub.f32 %f5, %f7, %f3;",
       product - c, product > c ? product + c : a},
      {"mul.rn.f32 %f7, %f1, %f2; add.f32 %f5, %f7, %f3;", product + c, a},
      {"mul.f32 %f7, %f1, %f2; add.rn.f32 %f5, %f7, %f3; sub.rz.f32 %f6, %f7, %f7;", product + c, 0},
      {"mul.f32 %f7, %f1, %f2; mov.f32 %f2, %f4; add.f32 %f5, %f7, %f3;", product + c, a},
      {"mul.f32 %f7, %f1, %f2; bra join; join: add.f32 %f5, %f7, %f3;", product + c, a},
      {"mul.f32 %f7, %f1, %f2; mul.f32 %f7, %f3, %f4; add.f32 %f5, %f7, %f3;", other + c, a},
  };
}

template <class T>
void expect_sums(engine_kind engine, T a, T b, T c, T d) {
  for (const sums<T>& s : all_sums(a, b, c, d)) {
    kernel_runner runner({kernel_of(s.body, sizeof(T) == 8)}, engine);
    auto* const out = static_cast<T*>(runner.allocate(2 * sizeof(T)));
    EXPECT_RUNS(runner.launch("k", {{1}, {1}}, out, a, b, c, d));
    EXPECT_EQ(out[0], s.first) << s.body;
    EXPECT_EQ(out[1], s.second) << s.body;
  }
}

TEST_P(FusedProducts, AreRoundedOnce) {
  // The products a * b and c * d are not representable, and a * b - c is the error of the product or near it.
  expect_sums<float>(GetParam(), 1.1F, 213, 234.3F, 1.3F);
  expect_sums<double>(GetParam(), 1.2, 213, 255.6, 1.3);
}

INSTANTIATE_FOR_ENGINES(FusedProducts);

}  // namespace
}  // namespace hpe::ptx::test
