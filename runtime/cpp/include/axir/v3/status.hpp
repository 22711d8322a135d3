// What goes wrong, and how it is told: as a `Status`, or as an exception `Error`.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace axir {
inline namespace v3 {

/// Kinds of failures; the numbers are those of the C interface.
enum class Code : int {
  ok = 0,
  wrong_argument = 1,    ///< An array of another size, or no memory at all.
  wrong_parameters = 2,  ///< A file of parameters that is missing, damaged, or another model's.
  wrong_machine = 3,     ///< The kernels are for another CPU or another version of this header.
  out_of_memory = 4,
  kernel_failed = 5,
  callback_failed = 6,
  file_failed = 7,  ///< A file could not be written.
};

/// Whether something worked, and if not, what happened.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::ok;
  std::string message_;
};

/// A failure, where a model was emitted with exceptions.
class Error : public std::runtime_error {
 public:
  explicit Error(const Status& status)
      : std::runtime_error(status.message()), code_(status.code()) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace v3
}  // namespace axir
