// Files of named arrays (safetensors): parameters of models, mapped into memory rather than read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define AXIR_MAPS_FILES 1
#endif

#include "memory.hpp"
#include "status.hpp"

namespace axir {
inline namespace v3 {

/// The bytes of a file, mapped where the system can.
class FileContent {
 public:
  FileContent() = default;
  FileContent(const FileContent&) = delete;
  FileContent& operator=(const FileContent&) = delete;
  ~FileContent() {
#ifdef AXIR_MAPS_FILES
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
#endif
  }

  Status open(const std::string& path) {
#ifdef AXIR_MAPS_FILES
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file < 0 || ::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
      if (file >= 0) ::close(file);
      return cannot_read(path);
    }
    size_ = static_cast<std::size_t>(status.st_size);
    void* mapped = size_ ? ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
    ::close(file);
    if (mapped == MAP_FAILED) return cannot_read(path);
    mapped_ = mapped;
    data_ = static_cast<const std::byte*>(mapped);
    return Status();
#else
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return cannot_read(path);
    std::byte block[1 << 16];
    while (const std::size_t count = std::fread(block, 1, sizeof block, file)) {
      read_.insert(read_.end(), block, block + count);
    }
    const bool failed = std::ferror(file) != 0;
    std::fclose(file);
    if (failed) return cannot_read(path);
    data_ = read_.data();
    size_ = read_.size();
    return Status();
#endif
  }

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  static Status cannot_read(const std::string& path) {
    return Status(Code::wrong_parameters, "cannot read the file of parameters " + path);
  }

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  void* mapped_ = nullptr;
  std::vector<std::byte> read_;
};

/// An array of a file.
struct StoredArray {
  std::string dtype;  ///< As safetensors writes it: `F32`, `I64`, `BOOL`.
  std::string shape;  ///< Extents with commas between them: `64,128`.
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

/// Named arrays in the safetensors format, in memory that must live as long.
class ParameterTable {
 public:
  /// Reads the table at the beginning of the content; nothing in it is trusted.
  Status read(const std::byte* data, std::size_t size) {
    std::uint64_t length = 0;
    if (size >= 8) std::memcpy(&length, data, 8);
    if (size < 8 || length > size - 8) return damaged("it is shorter than it says");
    text_ = reinterpret_cast<const char*>(data) + 8;
    end_ = text_ + length;
    content_ = data + 8 + length;
    content_size_ = size - 8 - length;
    arrays_.clear();
    return read_table() ? Status() : damaged("its table cannot be read");
  }

  /// Returns an array of the file, or null.
  const StoredArray* find(const std::string& name) const {
    const auto found = arrays_.find(name);
    return found == arrays_.end() ? nullptr : &found->second;
  }

 private:
  static Status damaged(const char* what) {
    return Status(Code::wrong_parameters,
                  std::string("these are no parameters in the safetensors format: ") + what);
  }

  // A reader of the part of JSON that such tables are written in.
  void skip_space() {
    while (text_ != end_ && (*text_ == ' ' || *text_ == '\n' || *text_ == '\t' || *text_ == '\r')) {
      ++text_;
    }
  }
  bool take(char wanted) {
    skip_space();
    if (text_ == end_ || *text_ != wanted) return false;
    ++text_;
    return true;
  }
  bool read_text(std::string& text) {
    text.clear();
    if (!take('"')) return false;
    while (text_ != end_ && *text_ != '"') {
      char letter = *text_++;
      if (letter == '\\') {
        if (text_ == end_) return false;
        letter = *text_++;
        if (letter == 'u' || letter == 'b' || letter == 'f') return false;
        if (letter == 'n') letter = '\n';
        if (letter == 't') letter = '\t';
        if (letter == 'r') letter = '\r';
      }
      text.push_back(letter);
    }
    return take('"');
  }
  bool read_numbers(std::vector<std::uint64_t>& numbers) {
    numbers.clear();
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      skip_space();
      std::uint64_t number = 0;
      const char* const start = text_;
      while (text_ != end_ && *text_ >= '0' && *text_ <= '9') {
        if (number > (UINT64_MAX - 9) / 10) return false;
        number = number * 10 + static_cast<std::uint64_t>(*text_++ - '0');
      }
      if (text_ == start) return false;
      numbers.push_back(number);
    } while (take(','));
    return take(']');
  }
  bool read_array(StoredArray& array) {
    std::string key;
    std::vector<std::uint64_t> extents, offsets;
    if (!take('{')) return false;
    do {
      if (!read_text(key) || !take(':')) return false;
      if (key == "dtype" ? !read_text(array.dtype)
          : key == "shape" ? !read_numbers(extents)
          : key == "data_offsets" ? !read_numbers(offsets) : true) {
        return false;
      }
    } while (take(','));
    if (!take('}') || offsets.size() != 2) return false;
    if (offsets[0] > offsets[1] || offsets[1] > content_size_) return false;
    array.shape.clear();
    for (const std::uint64_t extent : extents) {
      if (!array.shape.empty()) array.shape += ',';
      array.shape += std::to_string(extent);
    }
    array.data = content_ + offsets[0];
    array.size = static_cast<std::size_t>(offsets[1] - offsets[0]);
    return true;
  }
  bool read_metadata() {
    std::string key, value;
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      if (!read_text(key) || !take(':') || !read_text(value)) return false;
    } while (take(','));
    return take('}');
  }
  bool read_table() {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      std::string name;
      if (!read_text(name) || !take(':')) return false;
      if (name == "__metadata__" ? !read_metadata() : !read_array(arrays_[name])) return false;
    } while (take(','));
    return take('}');
  }

  const char* text_ = nullptr;
  const char* end_ = nullptr;
  const std::byte* content_ = nullptr;
  std::size_t content_size_ = 0;
  std::map<std::string, StoredArray> arrays_;
};

/// An array that is read from a file, or written to one.
struct ParameterType {
  const char* name;
  const char* dtype;  ///< As safetensors writes it.
  const char* shape;  ///< Extents with commas between them.
  std::size_t size;   ///< In bytes.
};

/// Writes named arrays to a file, which appears whole or not at all.
inline Status write_parameters(const std::string& path, const ParameterType* types,
                               const std::byte* const* data, std::size_t count) {
  std::string table = "{";
  std::size_t offset = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const ParameterType& type = types[index];
    std::string name;
    for (const char* letter = type.name; *letter != '\0'; ++letter) {
      if (*letter == '"' || *letter == '\\') name += '\\';
      name += *letter;
    }
    table += (index ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + type.dtype +
             "\",\"shape\":[" + type.shape + "],\"data_offsets\":[" + std::to_string(offset) + ',' +
             std::to_string(offset + type.size) + "]}";
    offset += type.size;
  }
  table += '}';
  while ((table.size() + 8) % alignment != 0) table += ' ';
  const std::uint64_t length = table.size();
  const std::string temporary = path + ".part";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return Status(Code::file_failed, "cannot write " + temporary);
  bool is_written = std::fwrite(&length, sizeof length, 1, file) == 1;
  is_written &= std::fwrite(table.data(), 1, table.size(), file) == table.size();
  for (std::size_t index = 0; index < count; ++index) {
    is_written &= std::fwrite(data[index], 1, types[index].size, file) == types[index].size;
  }
  is_written &= std::fclose(file) == 0;
  if (is_written && std::rename(temporary.c_str(), path.c_str()) == 0) return Status();
  std::remove(temporary.c_str());
  return Status(Code::file_failed, "cannot write " + path);
}

}  // namespace v3
}  // namespace axir
