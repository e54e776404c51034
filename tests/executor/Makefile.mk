# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# The GPU backends without a GPU: their kernels by the host's C++ compiler, their vtables over the vendors' headers of
# tests/ports, and the unit tests of kernels over both.

gpu_kernel_files = \
    backends/gpu/convert.h \
    backends/gpu/crc.h \
    backends/gpu/decode.h \
    backends/gpu/device.h \
    backends/gpu/element.h \
    backends/gpu/encode.h \
    backends/gpu/kernels.h \
    backends/gpu/launch.h \
    backends/gpu/lossless.h \
    backends/gpu/lossless_decode.h \
    backends/gpu/lossless_encode.h \
    backends/gpu/place.h \
    backends/gpu/quantize.h \
    backends/gpu/scratch.h \
    backends/gpu/select.h \
    backends/gpu/sketch.h \
    backends/gpu/sparsify.h
gpu_files = $(gpu_kernel_files) \
    backends/gpu/vtable.h \
    backends/cuda/cuda.c \
    backends/cuda/kernels.cu \
    backends/cuda/nvcc-lt.sh \
    backends/hip/hip.c \
    backends/hip/kernels.hip
executor_files = \
    tests/executor/executor.cpp \
    tests/executor/executor.h \
    tests/executor/executor_c.h \
    tests/executor/kernels.cpp \
    tests/executor/runtime.h \
    tests/ports/cuda_runtime_api.h \
    tests/ports/hip/hip_runtime_api.h \
    tests/ports/runtime_api.h
EXTRA_DIST += $(gpu_files) $(executor_files)

# What kernels see of the library's own headers
gpu_core_files = src/backend/backend.h src/core/bitmap.h src/core/frame.h src/core/frame_layout.h src/core/half.h \
    src/core/index_coded.h src/core/lossless.h src/core/lossless_choice.h src/core/lossless_code.h src/core/sketch.h src/core/sketch_integer.h src/core/type.h src/core/value.h \
    src/core/value_work.h

AM_V_CXX = $(am__v_CXX_$(V))
am__v_CXX_ = $(am__v_CXX_$(AM_DEFAULT_VERBOSITY))
am__v_CXX_0 = @echo "  CXX     " $@;
# Blocks of 128 threads, and long stretches soon: the tests' data are small
executor_cxx = $(AM_V_CXX)$(MKDIR_P) $(@D) && $(CXX) $(AM_CPPFLAGS) $(EXECUTOR_CXXFLAGS) \
    -DTAGCB_BLOCK=128 -DSELECT_SHORT=4096 -c -o $@
tests/executor/executor.$(OBJEXT): tests/executor/executor.cpp tests/executor/executor.h Makefile
	$(executor_cxx) $(top_srcdir)/tests/executor/executor.cpp
tests/executor/kernels32.$(OBJEXT): tests/executor/kernels.cpp tests/executor/executor.h $(gpu_kernel_files) \
    $(gpu_core_files) Makefile
	$(executor_cxx) -DEXECUTOR_WAVE=32 -DTAGCB_GPU_NAME=executor32 $(top_srcdir)/tests/executor/kernels.cpp
tests/executor/kernels64.$(OBJEXT): tests/executor/kernels.cpp tests/executor/executor.h $(gpu_kernel_files) \
    $(gpu_core_files) Makefile
	$(executor_cxx) -DEXECUTOR_WAVE=64 -DTAGCB_GPU_NAME=executor64 $(top_srcdir)/tests/executor/kernels.cpp
executor_objects = tests/executor/executor.$(OBJEXT) tests/executor/kernels32.$(OBJEXT) \
    tests/executor/kernels64.$(OBJEXT)
CLEANFILES += $(executor_objects)

check_LTLIBRARIES += tests/executor/libexecutor.la
tests_executor_libexecutor_la_SOURCES = tests/executor/cuda.c tests/executor/hip.c
tests_executor_libexecutor_la_CPPFLAGS = -I$(top_srcdir)/tests/ports $(AM_CPPFLAGS)

executor_tests = tests/unit/test_blocks_gpu tests/unit/test_golden_gpu tests/unit/test_gpu tests/unit/test_kernels_gpu
executor_ldadd = $(executor_objects) tests/executor/libexecutor.la $(LDADD)
tests_unit_test_blocks_gpu_SOURCES = tests/unit/test_blocks.c
tests_unit_test_blocks_gpu_CPPFLAGS = $(AM_CPPFLAGS) -DTAGC_TEST_EXECUTOR
tests_unit_test_blocks_gpu_LDADD = $(executor_ldadd)
tests_unit_test_golden_gpu_SOURCES = tests/unit/test_golden.c
tests_unit_test_golden_gpu_CPPFLAGS = $(AM_CPPFLAGS) -DTAGC_TEST_EXECUTOR
tests_unit_test_golden_gpu_LDADD = $(executor_ldadd)
tests_unit_test_gpu_LDADD = $(executor_ldadd)
tests_unit_test_kernels_gpu_SOURCES = tests/unit/test_kernels.c
tests_unit_test_kernels_gpu_CPPFLAGS = $(AM_CPPFLAGS) -DTAGC_TEST_EXECUTOR
tests_unit_test_kernels_gpu_LDADD = $(executor_ldadd)
if HAVE_EXECUTOR
if HAVE_CMOCKA
check_PROGRAMS += $(executor_tests)
TESTS += $(executor_tests)
endif
endif
