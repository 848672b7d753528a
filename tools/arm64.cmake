# Cross-compiles for arm64 with a Debian for arm64 in ARM64_ROOT (tests/arm64/run makes one, and runs what was built in it):
#
#     cmake -B build-arm64 -G Ninja --toolchain tools/arm64.cmake -DARM64_ROOT=DIR
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ARM64_ROOT)

set(CMAKE_SYSROOT ${ARM64_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ARM64_ROOT}/usr/share/pkgconfig)

# mpicc of this machine knows its own libraries only, and mpirun is run there.
set(MPI_ASSUME_NO_BUILTIN_MPI TRUE)
set(MPI_C_COMPILER ${CMAKE_C_COMPILER})
set(MPI_C_HEADER_DIR ${ARM64_ROOT}/usr/lib/aarch64-linux-gnu/openmpi/include)
set(MPI_C_LIB_NAMES mpi)
set(MPI_mpi_LIBRARY ${ARM64_ROOT}/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so)
set(MPIEXEC_EXECUTABLE /usr/bin/mpirun)

set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../tests/arm64/inside;${ARM64_ROOT})
