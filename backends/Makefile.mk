# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

# One convenience library for each instruction set: its file alone is compiled with its flags.
tagcb_libs =

tagcb_libs += libtagcb_openmp.la
libtagcb_openmp_la_SOURCES = \
    backends/openmp/kernels.h \
    backends/openmp/lanes_avx2.h \
    backends/openmp/lanes_avx512.h \
    backends/openmp/openmp.c \
    backends/openmp/openmp.h \
    backends/openmp/select.c \
    backends/openmp/select_keys.h \
    backends/openmp/tables.h \
    backends/openmp/template.h \
    backends/openmp/template_convert.h \
    backends/openmp/template_decode.h \
    backends/openmp/template_encode.h \
    backends/openmp/template_place.h \
    backends/openmp/template_sparsify.h \
    backends/openmp/template_work.h \
    backends/openmp/variants.c
libtagcb_openmp_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS)

tagcb_libs += libtagcb_openmp_portable.la
libtagcb_openmp_portable_la_SOURCES = backends/openmp/kernels_portable.c
libtagcb_openmp_portable_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS)

if HAVE_AVX2
tagcb_libs += libtagcb_openmp_avx2.la
endif
libtagcb_openmp_avx2_la_SOURCES = backends/openmp/kernels_avx2.c
libtagcb_openmp_avx2_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS) $(AVX2_CFLAGS)

if HAVE_AVX512
tagcb_libs += libtagcb_openmp_avx512.la
endif
libtagcb_openmp_avx512_la_SOURCES = backends/openmp/kernels_avx512.c
libtagcb_openmp_avx512_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS) $(AVX512_CFLAGS)

# GPUs: a file of kernels by the vendor's compiler, which libtool drives, and a vtable in C. A module of its own, so that the
# library needs no vendor's library; only where there is no shared library they are part of it.
AM_V_GPU = $(am__v_GPU_$(V))
am__v_GPU_ = $(am__v_GPU_$(AM_DEFAULT_VERBOSITY))
am__v_GPU_0 = @echo "  GPU     " $@;
# Compiled once: for the module, or for the static library
if ENABLE_SHARED
gpu_lt_mode = -shared
endif
gpu_cppflags = -I$(top_srcdir) -I$(top_srcdir)/src
gpu_module_ldflags = $(TAGC_LDFLAGS) -module -avoid-version -shared -export-symbols-regex '^tagcb_module$$'
backends/cuda/kernels.lo: backends/cuda/kernels.cu $(gpu_kernel_files) $(gpu_core_files) backends/cuda/nvcc-lt.sh Makefile
	$(AM_V_GPU)$(MKDIR_P) $(@D) && $(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile \
	    $(SHELL) $(top_srcdir)/backends/cuda/nvcc-lt.sh $(CUDA_COMPILER) $(CUDA_FLAGS) $(gpu_cppflags) $(gpu_lt_mode) \
	    -c -o $@ $(top_srcdir)/backends/cuda/kernels.cu
backends/hip/kernels.lo: backends/hip/kernels.hip $(gpu_kernel_files) $(gpu_core_files) Makefile
	$(AM_V_GPU)$(MKDIR_P) $(@D) && $(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile \
	    $(HIP_COMPILER) $(HIP_FLAGS) $(gpu_cppflags) $(gpu_lt_mode) -c -o $@ -x hip $(top_srcdir)/backends/hip/kernels.hip

pkglib_LTLIBRARIES =
if HAVE_CUDA
if ENABLE_SHARED
pkglib_LTLIBRARIES += tagc_cuda.la
noinst_LTLIBRARIES += libtagcb_cuda.la
else
tagcb_libs += libtagcb_cuda.la
endif
endif
tagc_cuda_la_SOURCES = backends/cuda/cuda.c
tagc_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DTAGCB_MODULE
tagc_cuda_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS)
tagc_cuda_la_LIBADD = backends/cuda/kernels.lo $(CUDA_LIBS)
tagc_cuda_la_LDFLAGS = $(gpu_module_ldflags)
libtagcb_cuda_la_SOURCES = backends/cuda/cuda.c
libtagcb_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
libtagcb_cuda_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS)
libtagcb_cuda_la_LIBADD = backends/cuda/kernels.lo $(CUDA_LIBS)

if HAVE_HIP
if ENABLE_SHARED
pkglib_LTLIBRARIES += tagc_hip.la
noinst_LTLIBRARIES += libtagcb_hip.la
else
tagcb_libs += libtagcb_hip.la
endif
endif
tagc_hip_la_SOURCES = backends/hip/hip.c
tagc_hip_la_CPPFLAGS = $(AM_CPPFLAGS) $(HIP_CPPFLAGS) -DTAGCB_MODULE
tagc_hip_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS)
tagc_hip_la_LIBADD = backends/hip/kernels.lo $(HIP_LIBS)
tagc_hip_la_LDFLAGS = $(gpu_module_ldflags)
libtagcb_hip_la_SOURCES = backends/hip/hip.c
libtagcb_hip_la_CPPFLAGS = $(AM_CPPFLAGS) $(HIP_CPPFLAGS)
libtagcb_hip_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS)
libtagcb_hip_la_LIBADD = backends/hip/kernels.lo $(HIP_LIBS)

noinst_LTLIBRARIES += $(tagcb_libs)
