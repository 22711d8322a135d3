// Files of parameters: written, mapped, read; those that are cut off anywhere are refused.
#include <axir/v3/parameters.hpp>

#include "expect.h"

namespace {

const float weights[] = {1, 2, 3, 4, 5, 6};
const std::int64_t count[] = {7};
const axir::ParameterType types[] = {{"params[\"w\\\"]", "F32", "2,3", 24}, {"n", "I64", "", 8}};
const char* const path = "parameters_test.safetensors";

std::vector<std::byte> written() {
  const std::byte* const data[] = {reinterpret_cast<const std::byte*>(weights),
                                   reinterpret_cast<const std::byte*>(count)};
  EXPECT(axir::write_parameters(path, types, data, 2).ok());
  axir::FileContent file;
  EXPECT(file.open(path).ok());
  return {file.data(), file.data() + file.size()};
}

void test_what_is_written_is_read(const std::vector<std::byte>& content) {
  axir::ParameterTable table;
  EXPECT(table.read(content.data(), content.size()).ok());
  const axir::StoredArray* const array = table.find("params[\"w\\\"]");
  EXPECT(array && array->dtype == "F32" && array->shape == "2,3" && array->size == 24);
  EXPECT(std::memcmp(array->data, weights, sizeof weights) == 0);
  EXPECT(table.find("n") && table.find("n")->shape.empty() && !table.find("m"));
}

void test_every_part_is_refused(const std::vector<std::byte>& content) {
  for (std::size_t size = 0; size < content.size(); ++size) {
    const std::vector<std::byte> part(content.begin(), content.begin() + std::ptrdiff_t(size));
    axir::ParameterTable table;
    EXPECT(table.read(part.data(), part.size()).code() == axir::Code::wrong_parameters);
  }
}

void test_no_file() {
  axir::FileContent file;
  EXPECT(file.open("/nowhere/at/all").code() == axir::Code::wrong_parameters);
  const axir::Status status = axir::write_parameters("/nowhere/at/all", types, nullptr, 0);
  EXPECT(status.code() == axir::Code::file_failed);
}

}  // namespace

int main() {
  const std::vector<std::byte> content = written();
  std::remove(path);
  test_what_is_written_is_read(content);
  test_every_part_is_refused(content);
  test_no_file();
}
