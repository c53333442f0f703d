# Debian's g++-riscv64-linux-gnu: `make dist CPUS=riscv64`.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_CXX_COMPILER riscv64-linux-gnu-g++)
# Programs are this machine's, and so are Python's headers, which these CPUs share.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
