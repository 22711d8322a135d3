// Threads that share work: each piece is done once, failures come back, callers do not wait.
#include <axir/v3/threads.hpp>

#include "expect.h"

namespace {

struct Work {
  std::vector<std::atomic<int>> done = std::vector<std::atomic<int>>(1000);
  std::uint32_t failing = ~0u;

  static int piece(void* context, std::uint32_t number) {
    Work& work = *static_cast<Work*>(context);
    ++work.done[number];
    return number == work.failing ? 7 : 0;
  }
};

void test_each_piece_is_done_once(unsigned threads) {
  axir::ThreadPool pool(threads);
  EXPECT(pool.size() == threads);
  for (int job = 0; job < 50; ++job) {
    Work work;
    EXPECT(pool.run(Work::piece, &work, 1000) == 0);
    for (const auto& times : work.done) EXPECT(times == 1);
  }
  EXPECT(pool.run(Work::piece, nullptr, 0) == 0);
}

void test_failures_come_back() {
  axir::ThreadPool pool(3);
  Work work;
  work.failing = 600;
  EXPECT(pool.run(Work::piece, &work, 1000) == 7);
  work.failing = ~0u;
  EXPECT(pool.run(Work::piece, &work, 1000) == 0);
}

void test_several_callers() {
  axir::ThreadPool pool(2);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&pool] {
      for (int job = 0; job < 50; ++job) {
        Work work;
        EXPECT(pool.run(Work::piece, &work, 1000) == 0);
        for (const auto& times : work.done) EXPECT(times == 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace

int main() {
  test_each_piece_is_done_once(1);
  test_each_piece_is_done_once(3);
  test_failures_come_back();
  test_several_callers();
}
