// Requests that come at the same time, computed together.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "digits.hpp"
#include "histogram.hpp"

using Image = std::array<float, 64>;

struct Prediction {
  std::array<float, 10> scores;  ///< logarithms of probabilities
  std::size_t batch;             ///< how many images were computed together
};

/// Threads that each take all images that wait, up to a number, and call the model once for them.
///
/// While a call is going on, further images gather for the next one: the more of them come, the
/// larger the batches, and a single one never waits for others.
class Batcher {
 public:
  Batcher(const digits::Model& model, unsigned threads, std::size_t largest)
      : largest_(largest), batches({1, 2, 4, 8, 16, 32, 64}) {
    for (unsigned number = 0; number < threads; ++number) {
      workers_.emplace_back([this, instance = digits::Model(model)]() mutable { serve(instance); });
    }
  }
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;
  ~Batcher() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  /// Waits for the prediction of an image.
  Prediction predict(const Image& image) {
    Job job{&image, {}};
    std::future<Prediction> prediction = job.done.get_future();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting_.push_back(&job);
    }
    wake_.notify_one();
    return prediction.get();
  }

 private:
  struct Job {
    const Image* image;
    std::promise<Prediction> done;
  };

  void serve(digits::Model& model) {
    std::vector<Job*> jobs;
    std::vector<float> images, scores;
    while (take(jobs)) {
      images.clear();
      for (const Job* job : jobs) images.insert(images.end(), job->image->begin(), job->image->end());
      scores.resize(10 * jobs.size());
      std::exception_ptr failure;
      try {
        model.predict(images, {scores});
      } catch (...) {
        failure = std::current_exception();
      }
      batches.add(static_cast<double>(jobs.size()));
      for (std::size_t number = 0; number < jobs.size(); ++number) {
        if (failure) {
          jobs[number]->done.set_exception(failure);
          continue;
        }
        Prediction prediction{{}, jobs.size()};
        std::copy_n(scores.data() + 10 * number, 10, prediction.scores.begin());
        jobs[number]->done.set_value(prediction);
      }
    }
  }

  /// Waits for jobs, and takes them; returns whether there are some.
  bool take(std::vector<Job*>& jobs) {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    const std::size_t count = std::min(waiting_.size(), largest_);
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
    jobs.assign(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    return count > 0;
  }

  const std::size_t largest_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job*> waiting_;
  bool is_ending_ = false;
  std::vector<std::thread> workers_;

 public:
  Histogram batches;  ///< numbers of images that were computed together
};
