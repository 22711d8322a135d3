// Kernels: functions of an object file that IREE's compiler has written, and how they are called.
//
// The structures are those of version 0.6 of IREE's interface of executable libraries; a library of
// another version is refused.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "memory.hpp"
#include "status.hpp"
#include "threads.hpp"

namespace axir {
inline namespace v3 {
namespace abi {

constexpr std::uint32_t version = 6;
constexpr std::size_t max_bindings = 64;

struct Header {
  std::uint32_t version;
  const char* name;
  std::uint32_t features;
  std::uint32_t sanitizer;
};

/// What a library may ask of the machine; nothing, where it was compiled for a known CPU.
struct Environment {
  const std::uint32_t* constants = nullptr;
  int (*import_thunk)(void*, void*, void*, void*) = nullptr;
  void* const* import_functions = nullptr;
  const void* const* import_contexts = nullptr;
  std::uint64_t processor[8] = {};
};

/// What is the same for all workgroups of a call.
struct DispatchState {
  std::uint32_t workgroup_size_x, workgroup_size_y;
  std::uint16_t workgroup_size_z;
  std::uint16_t constant_count;
  std::uint32_t workgroup_count_x, workgroup_count_y;
  std::uint16_t workgroup_count_z;
  std::uint8_t max_concurrency;
  std::uint8_t binding_count;
  const std::uint32_t* constants;
  void* const* bindings;
  const std::size_t* binding_lengths;
};

struct WorkgroupState {
  std::uint32_t workgroup_x, workgroup_y;
  std::uint16_t workgroup_z;
  std::uint16_t reserved;
  std::uint32_t processor;
  void* local_memory;
  std::uint32_t local_memory_size;
};

using Function = int (*)(const Environment*, const DispatchState*, const WorkgroupState*);

struct Attributes {
  std::uint64_t flags;
  std::uint16_t local_memory_pages;
  std::uint8_t constant_count;
  std::uint8_t binding_count;
  std::uint32_t workgroup_size_x, workgroup_size_y;
  std::uint16_t workgroup_size_z;
  std::uint16_t parameter_count;
  std::uint64_t reserved[5];
};

struct Library {
  const Header* header;
  std::uint32_t import_count;
  const char* const* import_names;
  std::uint32_t export_count;
  const Function* functions;
  const Attributes* attributes;
  const void* parameters;
  const void* occupancy;
  const char* const* names;
};

using Query = const Header* const* (*)(std::uint32_t max_version, const Environment*);

static_assert(sizeof(void*) == 8, "kernels are compiled for machines of 64 bits");
static_assert(sizeof(Environment) == 96 && sizeof(DispatchState) == 48);
static_assert(sizeof(WorkgroupState) == 32 && sizeof(Attributes) == 64);

}  // namespace abi

/// Memory that a kernel reads or writes.
struct Span {
  void* data;
  std::size_t length;
};

/// A kernel of a model, and how it has been found to run fastest.
class Kernel {
 public:
  /// Finds the kernel in a library by its name; `where` is the line that it computes.
  Status find(const abi::Library& library, const char* name, const char* where, std::uint32_t x,
              std::uint32_t y, std::uint32_t z) {
    for (std::uint32_t index = 0; index < library.export_count; ++index) {
      if (std::strcmp(library.names[index], name) != 0) continue;
      function_ = library.functions[index];
      name_ = name;
      where_ = where;
      const abi::Attributes* attributes = library.attributes;
      if (attributes != nullptr) local_size_ = attributes[index].local_memory_pages * 4096u;
      x_ = x;
      y_ = y;
      z_ = z;
      return Status();
    }
    return Status(Code::wrong_machine, std::string("the object file has no kernel ") + name);
  }

  std::size_t local_size() const { return local_size_; }
  const char* name() const { return name_; }
  const char* where() const { return where_; }

  /// Runs all workgroups on the threads of a pool, or in this thread where that is faster; returns
  /// 0, or what a workgroup returned.
  int run(ThreadPool* pool, std::byte* local_memory, const Span* spans, std::size_t span_count,
          const std::uint32_t* constants, std::size_t constant_count) {
    void* bindings[abi::max_bindings];
    std::size_t lengths[abi::max_bindings];
    for (std::size_t index = 0; index < span_count; ++index) {
      bindings[index] = spans[index].data;
      lengths[index] = spans[index].length;
    }
    abi::DispatchState state{};
    state.workgroup_size_x = state.workgroup_size_y = state.workgroup_size_z = 1;
    state.constant_count = static_cast<std::uint16_t>(constant_count);
    state.workgroup_count_x = x_;
    state.workgroup_count_y = y_;
    state.workgroup_count_z = static_cast<std::uint16_t>(z_);
    state.max_concurrency = 1;
    state.binding_count = static_cast<std::uint8_t>(span_count);
    state.constants = constants;
    state.bindings = bindings;
    state.binding_lengths = lengths;
    Job job{this, &state, local_memory};
    const std::uint32_t count = x_ * y_ * z_;
    if (pool == nullptr || count < 2 || local_size_ != 0) {
      return ThreadPool::run_alone(&run_workgroup, &job, count);
    }
    return run_shared(*pool, job, count);
  }

 private:
  struct Job {
    const Kernel* kernel;
    const abi::DispatchState* state;
    std::byte* local_memory;
  };
  using Clock = std::chrono::steady_clock;

  // Both ways are tried so often, and the faster one then stays.
  static constexpr unsigned kTrials = 3;
  // To share work takes some microseconds: what takes no longer alone is not tried.
  static constexpr std::int64_t kShortNanoseconds = 15000;

  static int run_workgroup(void* context, std::uint32_t number) {
    const Job& job = *static_cast<const Job*>(context);
    const Kernel& kernel = *job.kernel;
    static constexpr abi::Environment environment{};
    abi::WorkgroupState place{};
    place.workgroup_x = number % kernel.x_;
    place.workgroup_y = number / kernel.x_ % kernel.y_;
    place.workgroup_z = static_cast<std::uint16_t>(number / kernel.x_ / kernel.y_);
    place.local_memory = job.local_memory;
    place.local_memory_size = kernel.local_size_;
    return kernel.function_(&environment, job.state, &place);
  }

  int run_shared(ThreadPool& pool, Job& job, std::uint32_t count) {
    if (calls_ >= 2 * kTrials) {
      return shares_ ? pool.run(&run_workgroup, &job, count)
                     : ThreadPool::run_alone(&run_workgroup, &job, count);
    }
    const bool is_alone = calls_ < kTrials;
    const Clock::time_point start = Clock::now();
    const int failure = is_alone ? ThreadPool::run_alone(&run_workgroup, &job, count)
                                 : pool.run(&run_workgroup, &job, count);
    const std::int64_t taken =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    std::int64_t& least = is_alone ? alone_ : together_;
    if (taken < least) least = taken;
    ++calls_;
    if (calls_ == kTrials && alone_ < kShortNanoseconds) calls_ = 2 * kTrials;
    if (calls_ == 2 * kTrials) shares_ = together_ < alone_;
    return failure;
  }

  abi::Function function_ = nullptr;
  const char* name_ = "";
  const char* where_ = "";
  std::uint32_t x_ = 1, y_ = 1, z_ = 1;
  std::uint32_t local_size_ = 0;
  unsigned calls_ = 0;
  bool shares_ = false;
  std::int64_t alone_ = INT64_MAX, together_ = INT64_MAX;
};

/// Asks for the library of an object file, and looks at its version.
inline Status open_library(abi::Query query, const abi::Library*& library) {
  static constexpr abi::Environment environment{};
  const abi::Header* const* found = query(abi::version, &environment);
  if (found == nullptr || (*found)->version != abi::version) {
    return Status(Code::wrong_machine,
                  "the kernels have another version of IREE's interface than 0.6: emit the model "
                  "again, with the axir that this header is from");
  }
  library = reinterpret_cast<const abi::Library*>(found);
  if (library->import_count != 0) {
    return Status(Code::wrong_machine, std::string("the kernels need the function ") +
                                           library->import_names[0] + " of IREE's runtime");
  }
  return Status();
}

}  // namespace v3
}  // namespace axir
