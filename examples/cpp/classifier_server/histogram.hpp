// Distributions of measurements, in the text format of Prometheus.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <ostream>
#include <utility>
#include <vector>

/// Counts measurements up to some limits. Any thread may add.
class Histogram {
 public:
  /// Takes the limits, in order; measurements above the last one are counted, too.
  explicit Histogram(std::vector<double> limits)
      : limits_(std::move(limits)), counts_(limits_.size() + 1) {}

  void add(double value) {
    const auto place = std::lower_bound(limits_.begin(), limits_.end(), value);
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_[static_cast<std::size_t>(place - limits_.begin())];
    sum_ += value;
  }

  void write(std::ostream& out, const char* name, const char* help) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    out << "# HELP " << name << ' ' << help << "\n# TYPE " << name << " histogram\n";
    std::size_t count = 0;
    for (std::size_t number = 0; number < limits_.size(); ++number) {
      count += counts_[number];
      out << name << "_bucket{le=\"" << limits_[number] << "\"} " << count << '\n';
    }
    count += counts_.back();
    out << name << "_bucket{le=\"+Inf\"} " << count << '\n';
    out << name << "_sum " << sum_ << '\n' << name << "_count " << count << '\n';
  }

 private:
  const std::vector<double> limits_;
  mutable std::mutex mutex_;
  std::vector<std::size_t> counts_;
  double sum_ = 0;
};
