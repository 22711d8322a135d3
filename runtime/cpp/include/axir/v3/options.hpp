// What a model is constructed with.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "memory.hpp"
#include "profiling.hpp"
#include "threads.hpp"

namespace axir {
inline namespace v3 {

/// Options of a model; each has a default.
struct Options {
  /// Threads that work on large kernels, the calling one among them.
  unsigned threads = 1;
  /// Threads of yours to share with other models, instead.
  std::shared_ptr<ThreadPool> pool;
  /// The file of parameters, where it is not the one that was written beside the model.
  std::string parameters;
  /// Parameters in memory, in the format of such a file; they must live as long as the model.
  const void* parameter_data = nullptr;
  std::size_t parameter_size = 0;
  /// The CPU whose kernels to use, of those that the model was compiled for; empty for the fastest
  /// that this one can run.
  std::string target_cpu;
  /// Where memory comes from.
  Allocator allocator;
  /// Is told of each part of a call, if there is one.
  Profiler profiler;
};

}  // namespace v3
}  // namespace axir
