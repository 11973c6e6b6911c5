#include "tests/ptx/conformance/conformance_cases.h"

#include <fmt/core.h>

#include <random>

namespace hpe::ptx::test {

namespace {

char letter_of(const std::string& type) {
  if (type == "pred") return 'p';
  if (type.ends_with("x2")) return 'u';
  if (type.ends_with("16") || type.ends_with("8")) return 'h';
  return type.ends_with("64") ? 'v' : 'u';
}

class collector {
 public:
  // In shapes, t stands for the type's letter and W for twice its width; other letters stand for themselves.
  void add(const std::string& prefix, const std::string& type, const std::string& shape, const std::string& suffix = "",
           bool approximate = false) {
    std::string spelled;
    for (const char c : shape)
      spelled += c == 't' ? letter_of(type) : c == 'W' ? (letter_of(type) == 'h' ? 'u' : 'v') : c;
    cases.push_back({type.empty() ? prefix : prefix + "." + type, spelled, suffix, approximate});
  }
  void all(const std::vector<std::string>& prefixes, const std::vector<std::string>& types, const std::string& shape,
           const std::string& suffix = "", bool approximate = false) {
    for (const std::string& prefix : prefixes)
      for (const std::string& type : types) add(prefix, type, shape, suffix, approximate);
  }
  std::vector<conformance_case> cases;
};

const std::vector<std::string> integers{"u16", "s16", "u32", "s32", "u64", "s64"};
const std::vector<std::string> wide_integers{"u32", "s32", "u64", "s64"};
const std::vector<std::string> bits{"b16", "b32", "b64"};
const std::vector<std::string> halves{"f16", "f16x2", "bf16", "bf16x2"};

void add_integers(collector& c) {
  c.all({"add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"}, integers, "t=tt");
  c.all({"add.sat", "sub.sat"}, {"s32"}, "t=tt");
  c.all({"mul.wide"}, {"u16", "s16", "u32", "s32"}, "W=tt");
  c.all({"mad.lo", "mad.hi"}, integers, "t=ttt");
  c.all({"mad.hi.sat"}, {"s32"}, "t=ttt");
  c.all({"mad.wide"}, {"u16", "s16", "u32", "s32"}, "W=ttW");
  c.all({"mul24.lo", "mul24.hi"}, {"u32", "s32"}, "t=tt");
  c.all({"mad24.lo", "mad24.hi"}, {"u32", "s32"}, "t=ttt");
  c.all({"mad24.hi.sat"}, {"s32"}, "t=ttt");
  c.all({"sad"}, integers, "t=ttt");
  c.all({"abs", "neg"}, {"s16", "s32", "s64"}, "t=t");
  c.all({"add", "min", "max"}, {"u16x2", "s16x2"}, "u=uu");
  c.all({"min.relu", "max.relu"}, {"s32"}, "t=tt");
  for (const char* const a : {"u32", "s32"})
    for (const char* const b : {"u32", "s32"}) {
      c.add(fmt::format("dp4a.{}.{}", a, b), "", "u=uuu");
      c.add(fmt::format("dp2a.lo.{}.{}", a, b), "", "u=uuu");
      c.add(fmt::format("dp2a.hi.{}.{}", a, b), "", "u=uuu");
    }
}

void add_bits(collector& c) {
  c.all({"and", "or", "xor"}, {"pred", "b16", "b32", "b64"}, "t=tt");
  c.all({"not"}, {"pred", "b16", "b32", "b64"}, "t=t");
  c.all({"cnot"}, bits, "t=t");
  c.all({"mov"}, {"pred", "b16", "b32", "b64", "u16", "s32", "f32", "f64"}, "t=t");
  c.all({"shl"}, bits, "t=tu");
  c.all({"shr"}, {"b16", "b32", "b64", "u16", "s16", "u32", "s32", "u64", "s64"}, "t=tu");
  c.all({"popc", "clz"}, {"b32", "b64"}, "u=t");
  c.all({"brev"}, {"b32", "b64"}, "t=t");
  c.all({"bfind", "bfind.shiftamt"}, wide_integers, "u=t");
  c.all({"bfe"}, wide_integers, "t=tuu");
  c.all({"bfi"}, {"b32", "b64"}, "t=ttuu");
  c.all({"bmsk.clamp", "bmsk.wrap"}, {"b32"}, "u=uu");
  c.all({"szext.clamp", "szext.wrap"}, {"u32", "s32"}, "u=uu");
  c.all({"fns"}, {"b32"}, "u=uuu");
  c.all({"shf.l.clamp", "shf.l.wrap", "shf.r.clamp", "shf.r.wrap"}, {"b32"}, "u=uuu");
  c.all({"prmt"}, {"b32", "b32.f4e", "b32.b4e", "b32.rc8", "b32.ecl", "b32.ecr", "b32.rc16"}, "u=uuu");
  for (const int table : {0x80, 0x96, 0xe8, 0x1b, 0xfe, 0x00, 0xff})
    c.add("lop3", "b32", "u=uuu", fmt::format(", {}", table));
  c.all({"selp"}, {"b16", "b32", "b64", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"}, "t=ttp");
  c.all({"slct"}, {"b32.s32", "u64.s32", "f32.s32", "b16.s32"}, "t=ttu");
  c.add("slct.f32.f32", "", "u=uuu");
  c.add("slct.ftz.b64.f32", "", "v=vvu");
  for (conformance_case& k : c.cases)
    if (k.spelling.starts_with("slct.b32.s32") || k.spelling.starts_with("slct.f32.s32"))
      k.shape = "u=uuu";
    else if (k.spelling.starts_with("slct.u64.s32"))
      k.shape = "v=vvu";
    else if (k.spelling.starts_with("slct.b16.s32"))
      k.shape = "h=hhu";
  c.all({"vabsdiff4", "vabsdiff2", "vadd4", "vadd2", "vsub4", "vsub2", "vavrg4", "vavrg2", "vmin4", "vmin2", "vmax4",
         "vmax2"},
        {"u32.u32.u32", "s32.s32.s32"}, "u=uuu");
  c.all({"vabsdiff4", "vadd4"}, {"u32.u32.u32.add", "s32.s32.s32.sat"}, "u=uuu");
  for (conformance_case& k : c.cases)
    if (k.spelling[0] == 'v') k.shape = "u=uuu";
}

void add_floats(collector& c) {
  const std::vector<std::string> roundings{"rn", "rz", "rm", "rp"};
  for (const std::string& r : roundings) {
    c.all({"add." + r, "sub." + r, "mul." + r}, {"f32", "f64", "ftz.f32", "sat.f32", "ftz.sat.f32"}, "t=tt");
    c.all({"fma." + r, "mad." + r}, {"f32", "f64"}, "t=ttt");
    c.all({"fma." + r}, {"ftz.f32", "sat.f32"}, "t=ttt");
    c.all({"div." + r}, {"f32", "f64", "ftz.f32"}, "t=tt");
    c.all({"rcp." + r, "sqrt." + r}, {"f32", "f64", "ftz.f32"}, "t=t");
  }
  c.all({"add", "sub", "mul"}, {"f32", "f64", "ftz.f32"}, "t=tt");
  c.all({"min", "max"}, {"f32", "f64", "ftz.f32", "NaN.f32", "ftz.NaN.f32", "xorsign.abs.f32"}, "t=tt");
  c.all({"neg", "abs"}, {"f32", "f64", "ftz.f32"}, "t=t");
  c.all({"copysign"}, {"f32", "f64"}, "t=tt");
  for (const char* const p : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
    c.all({fmt::format("testp.{}", p)}, {"f32", "f64"}, "p=t");
  c.all({"div.approx", "div.full"}, {"f32", "ftz.f32"}, "t=tt", "", true);
  c.all({"rcp.approx", "sqrt.approx", "rsqrt.approx", "sin.approx", "cos.approx", "ex2.approx", "lg2.approx"},
        {"f32", "ftz.f32"}, "t=t", "", true);
  c.all({"tanh.approx"}, {"f32"}, "t=t", "", true);
  c.all({"rcp.approx.ftz", "rsqrt.approx.ftz", "rsqrt.approx"}, {"f64"}, "t=t", "", true);
  c.all({"add", "sub", "mul", "add.rn", "sub.rn", "mul.rn"}, halves, "t=tt");
  c.all({"add.ftz", "sub.sat", "mul.ftz.sat"}, {"f16", "f16x2"}, "t=tt");
  c.all({"fma.rn", "fma.rn.relu"}, halves, "t=ttt");
  c.all({"fma.rn.ftz", "fma.rn.sat"}, {"f16", "f16x2"}, "t=ttt");
  c.all({"min", "max", "min.NaN", "max.NaN"}, halves, "t=tt");
  c.all({"neg", "abs"}, halves, "t=t");
  c.all({"ex2.approx"}, {"f16", "f16x2"}, "t=t", "", true);
  c.all({"tanh.approx"}, {"f16", "f16x2", "bf16"}, "t=t", "", true);
}

void add_comparisons(collector& c) {
  for (const char* const op : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    c.all({fmt::format("setp.{}", op)},
          {"u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16", "ftz.f32"}, "p=tt");
    c.all({fmt::format("set.{}", op)}, {"u32.s32", "u32.f32", "f32.u32", "s32.f32"}, "u=uu");
    c.add(fmt::format("set.{}.u32.f64", op), "", "u=vv");
    c.add(fmt::format("set.{}.f16.f16", op), "", "h=hh");
    c.add(fmt::format("set.{}.f16x2.f16x2", op), "", "u=uu");
    c.add(fmt::format("set.{}.u32.f16x2", op), "", "u=uu");
  }
  for (const char* const op : {"eq", "ne"}) c.all({fmt::format("setp.{}", op)}, bits, "p=tt");
  for (const char* const op : {"lo", "ls", "hi", "hs"})
    c.all({fmt::format("setp.{}", op)}, {"u16", "u32", "u64"}, "p=tt");
  for (const char* const op : {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) {
    c.all({fmt::format("setp.{}", op)}, {"f32", "f64", "f16"}, "p=tt");
    c.add(fmt::format("set.{}.u32.f32", op), "", "u=uu");
  }
  for (const char* const op : {"and", "or", "xor"}) {
    c.add(fmt::format("setp.lt.{}.s32", op), "", "p=uup");
    c.add(fmt::format("setp.geu.{}.f64", op), "", "p=vvp");
  }
}

void add_conversions(collector& c) {
  const std::vector<std::string> whole{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
  const auto convert = [&](const std::string& modifiers, const std::string& to, const std::string& from) {
    c.add(fmt::format("cvt{}.{}.{}", modifiers, to, from), "", std::string{letter_of(to), '=', letter_of(from)});
  };
  for (const std::string& to : whole) {
    for (const std::string& from : whole) {
      convert("", to, from);
      // PTX does not allow .sat if every value of the source type fits into the target type.
      const unsigned to_bits = to.size() == 2 ? 8 : static_cast<unsigned>(std::stoi(to.substr(1)));
      const unsigned from_bits = from.size() == 2 ? 8 : static_cast<unsigned>(std::stoi(from.substr(1)));
      const bool fits = to[0] == from[0] ? to_bits >= from_bits : from[0] == 'u' && to_bits > from_bits;
      if (!fits) convert(".sat", to, from);
    }
  }
  for (const std::string& from : whole) {
    for (const char* const r : {".rn", ".rz", ".rm", ".rp"}) {
      for (const char* const to : {"f32", "f64", "f16"}) convert(r, to, from);
    }
  }
  for (const std::string& to : whole) {
    for (const char* const r : {".rni", ".rzi", ".rmi", ".rpi"}) {
      for (const char* const from : {"f32", "f64", "f16"}) convert(r, to, from);
      convert(std::string(r) + ".ftz", to, "f32");
    }
  }
  for (const char* const r : {".rni", ".rzi", ".rmi", ".rpi"}) {
    for (const char* const t : {"f32", "f64", "f16"}) convert(r, t, t);
    convert(std::string(r) + ".ftz", "f32", "f32");
  }
  for (const char* const r : {".rn", ".rz", ".rm", ".rp"}) {
    convert(r, "f32", "f64");
    convert(std::string(r) + ".ftz", "f32", "f64");
    convert(std::string(r) + ".sat", "f32", "f64");
    convert(r, "f16", "f64");
  }
  for (const char* const r : {".rn", ".rz"}) {
    convert(r, "f16", "f32");
    convert(r, "bf16", "f32");
    c.add(fmt::format("cvt{}.f16x2.f32", r), "", "u=uu");
    c.add(fmt::format("cvt{}.bf16x2.f32", r), "", "u=uu");
  }
  convert(".rn.relu", "f16", "f32");
  convert(".rna", "tf32", "f32");
  convert("", "f64", "f32");
  convert(".ftz", "f64", "f32");
  convert("", "f32", "f16");
  convert("", "f64", "f16");
  convert("", "f32", "bf16");
  convert(".sat", "f32", "f32");
  convert(".ftz.sat", "f32", "f32");
}

}  // namespace

std::vector<conformance_case> conformance_cases() {
  collector c;
  add_integers(c);
  add_bits(c);
  add_floats(c);
  add_comparisons(c);
  add_conversions(c);
  return c.cases;
}

std::vector<std::array<std::uint64_t, 4>> conformance_operands() {
  // The list contains halves, singles, doubles and integers; each value is used in all widths.
  const std::vector<std::uint64_t> corners{0,
                                           1,
                                           2,
                                           3,
                                           5,
                                           7,
                                           8,
                                           15,
                                           16,
                                           17,
                                           31,
                                           32,
                                           33,
                                           63,
                                           64,
                                           65,
                                           127,
                                           128,
                                           255,
                                           256,
                                           0x7fff,
                                           0x8000,
                                           0xffff,
                                           0x10000,
                                           0x7fffffff,
                                           0x80000000,
                                           0xfffffffe,
                                           0xffffffff,
                                           0x100000000,
                                           0x7fffffffffffffff,
                                           0x8000000000000000,
                                           0x8000000000000001,
                                           0xffffffffffffffff,
                                           0x0001,
                                           0x03ff,
                                           0x0400,
                                           0x3c00,
                                           0xbc00,
                                           0x3c01,
                                           0x7bff,
                                           0x7c00,
                                           0xfc00,
                                           0x7e00,
                                           0x7e01,
                                           0xfe01,
                                           0x3555,
                                           0x4248,  // f16
                                           0x3f80,
                                           0xbf80,
                                           0x7f80,
                                           0xff80,
                                           0x7fc0,
                                           0x0080,
                                           0x4049,  // bf16
                                           0x00000001,
                                           0x007fffff,
                                           0x00800000,
                                           0x3f800000,
                                           0xbf800000,
                                           0x3f800001,
                                           0x3fffffff,
                                           0x7f7fffff,
                                           0x7f800000,
                                           0xff800000,
                                           0x7fc00000,
                                           0xffc12345,
                                           0x7f812345,
                                           0x3eaaaaab,
                                           0x40490fdb,
                                           0x4b000000,
                                           0x4effffff,
                                           0x4f000000,
                                           0x4f800000,
                                           0x5f000000,
                                           0xcf000000,
                                           0xdf800000,
                                           0x3f000000,
                                           0x3fc00000,
                                           0x40200000,
                                           0xbf000000,  // f32
                                           0x0000000000000001,
                                           0x000fffffffffffff,
                                           0x0010000000000000,
                                           0x3ff0000000000000,
                                           0xbff0000000000000,
                                           0x3ff0000000000001,
                                           0x7fefffffffffffff,
                                           0x7ff0000000000000,
                                           0xfff0000000000000,
                                           0x7ff8000000000000,
                                           0xfff8000000012345,
                                           0x7ff0000000012345,
                                           0x400921fb54442d18,
                                           0x41dfffffffc00000,
                                           0x41e0000000000000,
                                           0x43e0000000000000,
                                           0x3fe0000000000000,
                                           0x3ff8000000000000,
                                           0x4004000000000000,
                                           0x36a0000000000000,
                                           0x3e60000000000000,
                                           0x47efffffe0000000,
                                           0x47effffff0000000};  // f64
  std::mt19937_64 random(20261121);                              // the operands are the same every time
  std::vector<std::array<std::uint64_t, 4>> operands;
  const auto corner = [&] { return corners[random() % corners.size()]; };
  for (const std::uint64_t first : corners) operands.push_back({first, corner(), corner(), corner()});
  for (const std::uint64_t second : corners) operands.push_back({corner(), second, corner(), corner()});
  while (operands.size() < 480) operands.push_back({corner(), corner(), corner() % 70, corner() % 70});
  while (operands.size() < 608) {
    const auto near = [&] {  // about 2^-7 as f64 and f32, about 1 as upper packed half; the lower half is often NaN
      return (random() & 0x8007ffff8007ffff) | 0x3f8000003c003c00;
    };
    operands.push_back({near(), near(), near(), random() % 64});
  }
  while (operands.size() < 768) operands.push_back({random(), random(), random(), random()});
  return operands;
}

std::string conformance_text(const std::vector<conformance_case>& cases) {
  std::string text = ".version 8.6\n.target sm_90\n.address_size 64\n";
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const conformance_case& k = cases[n];
    text += fmt::format(
        ".visible .entry case_{}(.param .u64 operands, .param .u64 results) {{\n.reg .pred %p<9>;\n.reg .b16 "
        "%h<9>;\n.reg .b32 %u<9>;\n.reg .b64 %v<9>;\n"
        ".reg .b64 %in, %out, %low;\n.reg .b32 %t, %n;\nld.param.u64 %in, [operands];\nld.param.u64 %out, [results];\n"
        "mov.u32 %t, %tid.x;\nmov.u32 %n, %ctaid.x;\nshl.b32 %n, %n, 7;\nadd.u32 %t, %t, %n;\nmad.wide.u32 %in, %t, "
        "32, %in;\nmad.wide.u32 %out, %t, 8, %out;\n",
        n);
    std::string operands;
    const std::string sources = k.shape.substr(2);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      text += fmt::format("ld.global.u64 %v{}, [%in+{}];\n", s, 8 * s);
      if (sources[s] == 'u') text += fmt::format("cvt.u32.u64 %u{0}, %v{0};\n", s);
      if (sources[s] == 'h') text += fmt::format("cvt.u16.u64 %h{0}, %v{0};\n", s);
      if (sources[s] == 'p') text += fmt::format("and.b64 %low, %v{0}, 1;\nsetp.ne.u64 %p{0}, %low, 0;\n", s);
      operands += fmt::format(", %{}{}", sources[s], s);
    }
    text += fmt::format("{} %{}8{}{};\n", k.spelling, k.shape[0], operands, k.suffix);
    if (k.shape[0] == 'u') text += "cvt.u64.u32 %v8, %u8;\n";
    if (k.shape[0] == 'h') text += "cvt.u64.u16 %v8, %h8;\n";
    if (k.shape[0] == 'p') text += "selp.u64 %v8, 1, 0, %p8;\n";
    text += "st.global.u64 [%out], %v8;\nret;\n}\n";
  }
  return text;
}

}  // namespace hpe::ptx::test
