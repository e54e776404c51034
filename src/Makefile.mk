# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

# The compressor without MPI; tests/abi/check-core looks after that
noinst_LTLIBRARIES += libtagc_core.la
libtagc_core_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS)
libtagc_core_la_SOURCES = \
    src/core/bitmap.h \
    src/core/index_coded.h \
    src/core/sample.h \
    src/core/crc32c.c \
    src/core/frame.c \
    src/core/frame.h \
    src/core/frame_layout.h \
    src/core/half.h \
    src/core/hash.h \
    src/core/lossless.c \
    src/core/lossless.h \
    src/core/lossless_choice.h \
    src/core/lossless_code.h \
    src/core/lossless_huffman.c \
    src/core/lossless_huffman.h \
    src/core/lossless_round.c \
    src/core/lossless_round.h \
    src/core/lossless_word.h \
    src/core/sketch.c \
    src/core/sketch.h \
    src/core/sketch_integer.h \
    src/core/type.c \
    src/core/type.h \
    src/core/value.c \
    src/core/value.h \
    src/core/value_work.h \
    src/util/mem.c \
    src/util/mem.h

# The rest of the library
libtagc_files = \
    src/api/checkpoint.c \
    src/api/error.c \
    src/api/form.c \
    src/api/form.h \
    src/api/gather.c \
    src/api/predefined.c \
    src/api/profile.h \
    src/api/reduce.c \
    src/api/request.c \
    src/api/request.h \
    src/api/stat.c \
    src/api/tensor.c \
    src/api/tensor.h \
    src/api/version.c \
    src/api/weak.c \
    src/backend/backend.h \
    src/backend/device.c \
    src/backend/device.h \
    src/backend/fallback.c \
    src/backend/module.c \
    src/backend/module.h \
    src/backend/registry.c \
    src/coll/agree.c \
    src/coll/agree.h \
    src/coll/board.c \
    src/coll/board.h \
    src/coll/aware.c \
    src/coll/checkpoint.c \
    src/coll/checkpoint.h \
    src/coll/comm.c \
    src/coll/comm.h \
    src/coll/cuts.c \
    src/coll/cuts.h \
    src/coll/edge.c \
    src/coll/edge.h \
    src/coll/engine.c \
    src/coll/engine.h \
    src/coll/gather.h \
    src/coll/gather_blocks.c \
    src/coll/gather_blocks.h \
    src/coll/gather_coded.c \
    src/coll/gather_native.c \
    src/coll/geometry.c \
    src/coll/geometry.h \
    src/coll/image.c \
    src/coll/image.h \
    src/coll/lanes.c \
    src/coll/lanes.h \
    src/coll/meet.c \
    src/coll/meet.h \
    src/coll/messages.c \
    src/coll/messages.h \
    src/coll/mpi.c \
    src/coll/mpi.h \
    src/coll/nodes.c \
    src/coll/nodes.h \
    src/coll/op.c \
    src/coll/op.h \
    src/coll/predefined.c \
    src/coll/predefined.h \
    src/coll/reduce_dense.c \
    src/coll/reduce_device.c \
    src/coll/reduce_device.h \
    src/coll/reduce_device_in.c \
    src/coll/reduce_device_out.c \
    src/coll/reduce_direct.c \
    src/coll/reduce_hierarchical.c \
    src/coll/reduce_pack.c \
    src/coll/reduce_result.c \
    src/coll/reduce_result.h \
    src/coll/reduce_sketch.c \
    src/coll/reduce_union.c \
    src/coll/reduce_union.h \
    src/coll/select.c \
    src/coll/select.h \
    src/coll/shared.c \
    src/coll/shared.h \
    src/coll/tensor.c \
    src/coll/tensor.h \
    src/coll/twin.c \
    src/coll/twin.h \
    src/coll/verify.c \
    src/coll/verify.h \
    src/util/costs.c \
    src/util/costs.h \
    src/util/error.c \
    src/util/error.h \
    src/util/handles.c \
    src/util/handles.h \
    src/util/layers.c \
    src/util/layers.h \
    src/util/log.c \
    src/util/log.h \
    src/util/mpi_state.h \
    src/util/settings.c \
    src/util/settings.h \
    src/util/settings_parse.c \
    src/util/settings_table.h

# What repeats tagc.h is written by a script, in the build folder; a tarball has it
interfaces_awk = $(MKDIR_P) $(@D) && $(AWK) -f $(top_srcdir)/src/interfaces.awk
interfaces_from = include/tagc.h src/interfaces.awk
include/tagc_profile.h: $(interfaces_from)
	$(AM_V_GEN)$(interfaces_awk) -v want=profile $(top_srcdir)/include/tagc.h >$@.new && mv -f $@.new $@
src/api/profile.h: $(interfaces_from)
	$(AM_V_GEN)$(interfaces_awk) -v want=names $(top_srcdir)/include/tagc.h >$@.new && mv -f $@.new $@
src/api/weak.c: $(interfaces_from)
	$(AM_V_GEN)$(interfaces_awk) -v want=weak $(top_srcdir)/include/tagc.h >$@.new && mv -f $@.new $@
EXTRA_DIST += src/interfaces.awk
CLEANFILES += include/tagc_profile.h.new src/api/profile.h.new src/api/weak.c.new
DISTCLEANFILES += include/tagc_profile.h src/api/profile.h src/api/weak.c

# Tools
if BUILD_TOOLS
bin_PROGRAMS += tagc_info tagc_bench
endif
tagc_info_SOURCES = \
    src/tools/report.c \
    src/tools/report.h \
    src/tools/tagc_info.c
tagc_info_LDADD = libtagc_all.la
tagc_info_CFLAGS = $(TAGC_CFLAGS) $(OPENMP_CFLAGS)
tagc_bench_SOURCES = \
    src/tools/bench.h \
    src/tools/bench_case.c \
    src/tools/bench_check.c \
    src/tools/bench_collectives.c \
    src/tools/bench_kernels.c \
    src/tools/bench_lossless.c \
    src/tools/bench_mpi.h \
    src/tools/bench_tune.c \
    src/tools/tagc_bench.c
tagc_bench_LDADD = libtagc_all.la
tagc_bench_CFLAGS = $(TAGC_CFLAGS) $(OPENMP_CFLAGS)
