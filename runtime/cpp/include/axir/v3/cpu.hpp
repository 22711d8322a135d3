// What the CPU can do on which a model runs, and which of the model's kernels it can run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "description.hpp"
#include "status.hpp"

namespace axir {
inline namespace v3 {

namespace detail {

#if defined(__x86_64__)

// Where a CPU says that it has a feature: a function of the instruction CPUID, a register, a bit.
// Registers that the operating system must save: 0 none, 1 those of AVX, 2 those of AVX-512.
struct FeatureBit {
  const char* name;
  std::uint32_t leaf, subleaf;
  unsigned register_number, bit, saved;
};

inline constexpr FeatureBit feature_bits[] = {
    {"sse3", 1, 0, 2, 0, 0},
    {"ssse3", 1, 0, 2, 9, 0},
    {"fma", 1, 0, 2, 12, 1},
    {"cx16", 1, 0, 2, 13, 0},
    {"sse4.1", 1, 0, 2, 19, 0},
    {"sse4.2", 1, 0, 2, 20, 0},
    {"movbe", 1, 0, 2, 22, 0},
    {"popcnt", 1, 0, 2, 23, 0},
    {"avx", 1, 0, 2, 28, 1},
    {"f16c", 1, 0, 2, 29, 1},
    {"bmi", 7, 0, 1, 3, 0},
    {"avx2", 7, 0, 1, 5, 1},
    {"bmi2", 7, 0, 1, 8, 0},
    {"avx512f", 7, 0, 1, 16, 2},
    {"avx512dq", 7, 0, 1, 17, 2},
    {"adx", 7, 0, 1, 19, 0},
    {"avx512ifma", 7, 0, 1, 21, 2},
    {"avx512cd", 7, 0, 1, 28, 2},
    {"avx512bw", 7, 0, 1, 30, 2},
    {"avx512vl", 7, 0, 1, 31, 2},
    {"avx512vbmi", 7, 0, 2, 1, 2},
    {"avx512vbmi2", 7, 0, 2, 6, 2},
    {"gfni", 7, 0, 2, 8, 0},
    {"avx512vnni", 7, 0, 2, 11, 2},
    {"avx512bitalg", 7, 0, 2, 12, 2},
    {"avx512vpopcntdq", 7, 0, 2, 14, 2},
    {"avx512fp16", 7, 0, 3, 23, 2},
    {"avxvnni", 7, 1, 0, 4, 1},
    {"avx512bf16", 7, 1, 0, 5, 2},
    {"sahf", 0x80000001u, 0, 2, 0, 0},
    {"lzcnt", 0x80000001u, 0, 2, 5, 0},
    {"xop", 0x80000001u, 0, 2, 11, 1},
    {"fma4", 0x80000001u, 0, 2, 16, 1},
    {"tbm", 0x80000001u, 0, 2, 21, 0},
};

/// Tells which registers the operating system saves: 0, 1 or 2 as above.
inline unsigned saved_registers() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 27 & 1) == 0) return 0;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 0x06) != 0x06) return 0;
  return (low & 0xe6) == 0xe6 ? 2 : 1;
}

inline bool has_feature(const char* name, std::size_t length) {
  for (const FeatureBit& place : feature_bits) {
    if (std::strlen(place.name) != length || std::strncmp(place.name, name, length) != 0) continue;
    unsigned registers[4] = {};
    const int is_known = __get_cpuid_count(place.leaf, place.subleaf, &registers[0], &registers[1],
                                           &registers[2], &registers[3]);
    return is_known != 0 && (registers[place.register_number] >> place.bit & 1) != 0 &&
           (place.saved == 0 || saved_registers() >= place.saved);
  }
  return false;
}

#elif defined(__aarch64__) && defined(__linux__)

// Where Linux says that a CPU has a feature: a word of the auxiliary vector, a bit.
struct FeatureBit {
  const char* name;
  unsigned long word;
  unsigned bit;
};

inline constexpr FeatureBit feature_bits[] = {
    {"aes", AT_HWCAP, 3},       {"crc", AT_HWCAP, 7},     {"lse", AT_HWCAP, 8},
    {"fullfp16", AT_HWCAP, 10}, {"rdm", AT_HWCAP, 12},    {"jsconv", AT_HWCAP, 13},
    {"complxnum", AT_HWCAP, 14}, {"rcpc", AT_HWCAP, 15},  {"dotprod", AT_HWCAP, 20},
    {"sve", AT_HWCAP, 22},      {"sve2", AT_HWCAP2, 1},   {"i8mm", AT_HWCAP2, 13},
    {"bf16", AT_HWCAP2, 14},
};

inline bool has_feature(const char* name, std::size_t length) {
  for (const FeatureBit& place : feature_bits) {
    if (std::strlen(place.name) != length || std::strncmp(place.name, name, length) != 0) continue;
    return (getauxval(place.word) >> place.bit & 1) != 0;
  }
  return false;
}

#else

// Other systems do not tell in a way that is known here: kernels are for CPUs that have it all.
inline bool has_feature(const char*, std::size_t) { return true; }

#endif

/// Returns the features that the CPU lacks, with spaces between.
inline std::string missing_features(const char* features) {
  std::string missing;
  for (const char* start = features; *start != '\0';) {
    const std::size_t length = std::strcspn(start, " ");
    if (!has_feature(start, length)) {
      missing.append(missing.empty() ? "" : " ").append(start, length);
    }
    start += length;
    start += std::strspn(start, " ");
  }
  return missing;
}

}  // namespace detail

/// Chooses the first of some kinds of kernels that this CPU can run, or the one that is named.
///
/// Returns its number, or -1 if there is none; then `status` says why.
inline int choose_variant(const Variant* variants, std::size_t count, const std::string& name,
                          Status& status) {
  std::string names, reasons;
  for (std::size_t index = 0; index < count; ++index) {
    names.append(index == 0 ? "" : ", ").append(variants[index].name);
    if (!name.empty() && name != variants[index].name) continue;
    const std::string missing = detail::missing_features(variants[index].features);
    if (missing.empty()) {
      status = Status();
      return static_cast<int>(index);
    }
    reasons.append(reasons.empty() ? "" : "; those for ");
    reasons.append(variants[index].name).append(" need ").append(missing);
  }
  if (reasons.empty()) {
    status = Status(Code::wrong_argument, "the model has no kernels for the CPU '" + name +
                                              "'; it has some for " + names);
  } else {
    status = Status(Code::wrong_machine,
                    "this CPU cannot run the model's kernels: those for " + reasons +
                        ", which it lacks. Compile the model for this CPU, too");
  }
  return -1;
}

}  // namespace v3
}  // namespace axir
