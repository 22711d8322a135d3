// What takes how long in a model: a function of the user's is told of each part of a call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace axir {
inline namespace v3 {

/// Kinds of parts; the numbers are those of the C interface.
enum class Part : int {
  call = 0,      ///< A call of a method.
  rows = 1,      ///< The program for one number of rows, in a call with any number of them.
  kernel = 2,    ///< A kernel, on all threads that share it.
  callback = 3,  ///< A function of the user's.
};

/// The beginning or the end of a part of a call.
struct Event {
  Part part;
  bool is_end;
  const char* name;          ///< Of the method, the kernel or the callback; part of the program.
  const char* where;         ///< Of a kernel, the line of Python that it computes, or "".
  std::int64_t nanoseconds;  ///< At the end, how long the part took; 0 at the beginning.
};

/// Is called in the thread that calls the model; must not throw, nor call the model. Parts lie in
/// each other: each begins and ends before the next one does.
using Profiler = std::function<void(const Event&)>;

/// Tells a profiler, if there is one, of a part that lasts as long as this object lives.
class Moment {
 public:
  Moment(const Profiler* profiler, Part part, const char* name, const char* where = "")
      : profiler_(profiler), part_(part), name_(name), where_(where) {
    if (profiler_ != nullptr) begin();
  }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;
  ~Moment() {
    if (profiler_ != nullptr) end();
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[gnu::cold, gnu::noinline]] void begin() {
    (*profiler_)(Event{part_, false, name_, where_, 0});
    start_ = Clock::now();
  }
  [[gnu::cold, gnu::noinline]] void end() {
    const auto taken = Clock::now() - start_;
    const auto count = std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
    (*profiler_)(Event{part_, true, name_, where_, static_cast<std::int64_t>(count)});
  }

  const Profiler* profiler_;
  Part part_;
  const char* name_;
  const char* where_;
  Clock::time_point start_;
};

}  // namespace v3
}  // namespace axir
