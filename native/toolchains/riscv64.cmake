# `make dist CPUS=riscv64`: tools/dist names the compiler.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
# Programs are this machine's, and so are Python's headers, which these CPUs share.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
