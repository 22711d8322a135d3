// Threads that share the work of a large kernel.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace axir {
inline namespace v3 {

namespace detail {

/// Tells the processor that this thread only waits.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace detail

/// Threads that work on one kernel at a time. Several models may share them: one that finds them
/// busy works alone.
class ThreadPool {
 public:
  /// A piece of work, by its number; returns 0 if it is done.
  using Task = int (*)(void* context, std::uint32_t number);

  /// Starts threads, so that with the calling one there are `threads` of them.
  explicit ThreadPool(unsigned threads) {
    for (unsigned number = 1; number < threads; ++number) {
      workers_.emplace_back([this] { serve(); });
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  /// The number of threads, the calling one among them.
  unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  /// Does all pieces of work, numbered from 0; returns what the first failing one returned, or 0.
  int run(Task task, void* context, std::uint32_t count) {
    const std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    if (workers_.empty() || count < 2 || !turn.owns_lock()) return run_alone(task, context, count);
    task_ = task;
    context_ = context;
    count_ = count;
    failure_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    // The number of the job stands above that of the pieces left, so that none is taken twice.
    open_.store((++jobs_ << 32) | count, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      wake_.notify_all();
    }
    work();
    for (unsigned spins = 0; done_.load(std::memory_order_acquire) != count; ++spins) {
      if (spins < kSpins) {
        detail::pause();
      } else {
        std::this_thread::yield();
      }
    }
    return failure_.load(std::memory_order_relaxed);
  }

  /// Does all pieces of work in this thread.
  static int run_alone(Task task, void* context, std::uint32_t count) {
    for (std::uint32_t number = 0; number < count; ++number) {
      if (const int failure = task(context, number)) return failure;
    }
    return 0;
  }

 private:
  // Kernels follow each other within microseconds; to wake a thread takes ten.
  static constexpr unsigned kSpins = 2000;

  static bool has_work(std::uint64_t open) { return (open & 0xffffffffu) != 0; }

  /// Takes pieces of work until none is left.
  void work() {
    std::uint64_t open = open_.load(std::memory_order_acquire);
    while (has_work(open)) {
      if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
      const std::uint32_t number = count_ - static_cast<std::uint32_t>(open & 0xffffffffu);
      if (const int failure = task_(context_, number)) {
        int none = 0;
        failure_.compare_exchange_strong(none, failure, std::memory_order_relaxed);
      }
      done_.fetch_add(1, std::memory_order_release);
      open = open_.load(std::memory_order_acquire);
    }
  }

  void serve() {
    unsigned spins = 0;
    while (true) {
      if (has_work(open_.load(std::memory_order_acquire))) {
        work();
        spins = 0;
      } else if (++spins < kSpins) {
        detail::pause();
      } else {
        std::unique_lock<std::mutex> lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        wake_.wait(lock, [this] {
          return is_ending_ || has_work(open_.load(std::memory_order_seq_cst));
        });
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        if (is_ending_) return;
        spins = 0;
      }
    }
  }

  std::mutex turn_;  // of those who have work
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint64_t jobs_ = 0;
  std::atomic<std::uint64_t> open_{0};
  std::atomic<std::uint32_t> done_{0};
  std::atomic<int> failure_{0};

  std::mutex mutex_;  // of those who sleep
  std::condition_variable wake_;
  std::atomic<unsigned> sleepers_{0};
  bool is_ending_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace v3
}  // namespace axir
