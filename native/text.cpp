#include "text.hpp"

#include <cstdio>
#include <memory>

namespace linkgauge {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

std::string read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "re"));
  std::string text;
  if (!file) return text;
  char block[1 << 14];
  while (const std::size_t count = std::fread(block, 1, sizeof block, file.get())) {
    text.append(block, count);
  }
  return text;
}

void read_lines(const std::string& path, const std::function<bool(std::string_view)>& see) {
  const File file(std::fopen(path.c_str(), "re"));
  char line[1 << 12];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr && see(line)) {
  }
}

}  // namespace linkgauge
