# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# Programs for a machine with a GPU: tests/gpu/run builds and runs them. The first two are the unit tests of kernels.

EXTRA_DIST += tests/gpu/run
EXTRA_PROGRAMS = $(gpu_programs_cuda) $(gpu_programs_hip)
gpu_programs_cuda = tests/unit/test_blocks_cuda tests/unit/test_golden_cuda tests/unit/test_kernels_cuda tests/gpu/rates_cuda tests/gpu/direct_cuda
gpu_programs_hip = tests/unit/test_blocks_hip tests/unit/test_golden_hip tests/unit/test_kernels_hip tests/gpu/rates_hip tests/gpu/direct_hip
gpu_programs =
if HAVE_CUDA
gpu_programs += $(gpu_programs_cuda)
endif
if HAVE_HIP
gpu_programs += $(gpu_programs_hip)
endif
.PHONY: check-gpu-programs
check-gpu-programs: $(gpu_programs)
CLEANFILES += $(EXTRA_PROGRAMS)

gpu_cppflags_cuda = $(AM_CPPFLAGS) -DTAGC_TEST_DEVICE=tagcb_cuda
gpu_ldadd_cuda = libtagcb_cuda.la $(LDADD)
tests_unit_test_blocks_cuda_SOURCES = tests/unit/test_blocks.c
tests_unit_test_blocks_cuda_CPPFLAGS = $(gpu_cppflags_cuda)
tests_unit_test_blocks_cuda_LDADD = $(gpu_ldadd_cuda)
tests_unit_test_golden_cuda_SOURCES = tests/unit/test_golden.c
tests_unit_test_golden_cuda_CPPFLAGS = $(gpu_cppflags_cuda)
tests_unit_test_golden_cuda_LDADD = $(gpu_ldadd_cuda)
tests_unit_test_kernels_cuda_SOURCES = tests/unit/test_kernels.c
tests_unit_test_kernels_cuda_CPPFLAGS = $(gpu_cppflags_cuda)
tests_unit_test_kernels_cuda_LDADD = $(gpu_ldadd_cuda)
tests_gpu_rates_cuda_SOURCES = tests/gpu/rates.c
tests_gpu_rates_cuda_CPPFLAGS = $(gpu_cppflags_cuda)
tests_gpu_rates_cuda_LDADD = $(gpu_ldadd_cuda)
tests_gpu_direct_cuda_SOURCES = tests/gpu/direct.c
tests_gpu_direct_cuda_CPPFLAGS = $(gpu_cppflags_cuda)
tests_gpu_direct_cuda_LDADD = libtagcb_cuda.la libtagc_all.la

gpu_cppflags_hip = $(AM_CPPFLAGS) -DTAGC_TEST_DEVICE=tagcb_hip
gpu_ldadd_hip = libtagcb_hip.la $(LDADD)
tests_unit_test_blocks_hip_SOURCES = tests/unit/test_blocks.c
tests_unit_test_blocks_hip_CPPFLAGS = $(gpu_cppflags_hip)
tests_unit_test_blocks_hip_LDADD = $(gpu_ldadd_hip)
tests_unit_test_golden_hip_SOURCES = tests/unit/test_golden.c
tests_unit_test_golden_hip_CPPFLAGS = $(gpu_cppflags_hip)
tests_unit_test_golden_hip_LDADD = $(gpu_ldadd_hip)
tests_unit_test_kernels_hip_SOURCES = tests/unit/test_kernels.c
tests_unit_test_kernels_hip_CPPFLAGS = $(gpu_cppflags_hip)
tests_unit_test_kernels_hip_LDADD = $(gpu_ldadd_hip)
tests_gpu_rates_hip_SOURCES = tests/gpu/rates.c
tests_gpu_rates_hip_CPPFLAGS = $(gpu_cppflags_hip)
tests_gpu_rates_hip_LDADD = $(gpu_ldadd_hip)
tests_gpu_direct_hip_SOURCES = tests/gpu/direct.c
tests_gpu_direct_hip_CPPFLAGS = $(gpu_cppflags_hip)
tests_gpu_direct_hip_LDADD = libtagcb_hip.la libtagc_all.la

# The same over the executor, so that they do not rot
tests_gpu_rates_executor_SOURCES = tests/gpu/rates.c
tests_gpu_rates_executor_CPPFLAGS = $(AM_CPPFLAGS) -DTAGC_TEST_DEVICE=tagcb_executor32
tests_gpu_rates_executor_LDADD = $(executor_ldadd)
dist_check_SCRIPTS += tests/gpu/check-rates
tests_mpi_executor_SOURCES = tests/gpu/direct.c
if HAVE_EXECUTOR
tests_mpi_executor_CPPFLAGS = $(AM_CPPFLAGS) -DTAGC_TEST_DEVICE=tagcb_executor32 -DTAGC_TEST_ADD
tests_mpi_executor_LDADD = $(executor_objects) tests/executor/libexecutor.la libtagc_all.la
check_PROGRAMS += tests/gpu/rates_executor
TESTS += tests/gpu/check-rates
endif
