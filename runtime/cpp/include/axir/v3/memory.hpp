// Memory for kernels: aligned, from the allocator that the user names, and used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace axir {
inline namespace v3 {

/// Kernels read and write whole vectors: what they are given begins at a multiple of this.
constexpr std::size_t alignment = 64;

/// Where memory comes from; by default from `operator new`.
struct Allocator {
  /// Returns memory, or null.
  void* (*allocate)(std::size_t size, std::size_t alignment, void* context) = nullptr;
  /// Takes back what `allocate` gave for this size.
  void (*release)(void* memory, std::size_t size, void* context) = nullptr;
  void* context = nullptr;

  void* take(std::size_t size) const {
    if (allocate != nullptr) return allocate(size, alignment, context);
    return ::operator new(size, std::align_val_t{alignment}, std::nothrow);
  }
  void give_back(void* memory, std::size_t size) const {
    if (allocate != nullptr) {
      release(memory, size, context);
    } else {
      ::operator delete(memory, std::align_val_t{alignment});
    }
  }
};

inline bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignment == 0;
}

/// Memory that one object owns.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Allocator& allocator, std::size_t size)
      : allocator_(allocator), size_(size ? size : 1),
        data_(static_cast<std::byte*>(allocator.take(size_))) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) allocator_.give_back(data_, size_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  void swap(Buffer& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
  }

 private:
  Allocator allocator_;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

class Heap;

/// A share in memory of a heap; or memory of somebody else's. For one thread.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::byte* data) : data_(data) {}
  Memory(const Memory& other) : data_(other.data_), block_(other.block_) { keep(); }
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), block_(std::exchange(other.block_, nullptr)) {}
  Memory& operator=(Memory other) noexcept {
    std::swap(data_, other.data_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~Memory() {
    if (block_ != nullptr) --block_->shares;
  }

  std::byte* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }
  /// A part of the memory, which keeps the whole.
  Memory part(std::size_t offset) const {
    Memory result(*this);
    result.data_ += offset;
    return result;
  }

 private:
  friend class Heap;
  struct Block {
    Buffer buffer;
    std::size_t shares = 0;
  };
  void keep() {
    if (block_ != nullptr) ++block_->shares;
  }

  std::byte* data_ = nullptr;
  Block* block_ = nullptr;
};

/// Memory of any size that is kept when it is given back, for the next one who wants that size: in
/// the second call of a function nothing is allocated. For one thread.
class Heap {
 public:
  explicit Heap(const Allocator& allocator) : allocator_(allocator) {}

  /// Returns memory, empty if there is none left.
  Memory take(std::size_t size) {
    for (const std::unique_ptr<Memory::Block>& block : blocks_) {
      if (block->shares == 0 && block->buffer.size() == size) return share(*block);
    }
    Buffer buffer(allocator_, size);
    if (buffer.data() == nullptr) return Memory();
    blocks_.push_back(std::make_unique<Memory::Block>());
    blocks_.back()->buffer = std::move(buffer);
    return share(*blocks_.back());
  }

 private:
  static Memory share(Memory::Block& block) {
    Memory result(block.buffer.data());
    result.block_ = &block;
    block.shares = 1;
    return result;
  }

  Allocator allocator_;
  std::vector<std::unique_ptr<Memory::Block>> blocks_;
};

}  // namespace v3
}  // namespace axir
