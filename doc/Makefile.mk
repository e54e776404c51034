# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

dist_man_MANS = \
    doc/man/man1/tagc_bench.1 \
    doc/man/man1/tagc_info.1 \
    doc/man/man3/TAGC_Allgather.3 \
    doc/man/man3/TAGC_Allgather_c.3 \
    doc/man/man3/TAGC_Allgather_init.3 \
    doc/man/man3/TAGC_Allgather_init_c.3 \
    doc/man/man3/TAGC_Allgatherv.3 \
    doc/man/man3/TAGC_Allgatherv_c.3 \
    doc/man/man3/TAGC_Allgatherv_init.3 \
    doc/man/man3/TAGC_Allgatherv_init_c.3 \
    doc/man/man3/TAGC_Allreduce.3 \
    doc/man/man3/TAGC_Allreduce_c.3 \
    doc/man/man3/TAGC_Allreduce_init.3 \
    doc/man/man3/TAGC_Allreduce_init_c.3 \
    doc/man/man3/TAGC_Error_class.3 \
    doc/man/man3/TAGC_Error_string.3 \
    doc/man/man3/TAGC_Get_library_version.3 \
    doc/man/man3/TAGC_Get_stat.3 \
    doc/man/man3/TAGC_Get_version.3 \
    doc/man/man3/TAGC_Iallgather.3 \
    doc/man/man3/TAGC_Iallgather_c.3 \
    doc/man/man3/TAGC_Iallgatherv.3 \
    doc/man/man3/TAGC_Iallgatherv_c.3 \
    doc/man/man3/TAGC_Iallreduce.3 \
    doc/man/man3/TAGC_Iallreduce_c.3 \
    doc/man/man3/TAGC_Ireduce_scatter.3 \
    doc/man/man3/TAGC_Ireduce_scatter_block.3 \
    doc/man/man3/TAGC_Ireduce_scatter_block_c.3 \
    doc/man/man3/TAGC_Ireduce_scatter_c.3 \
    doc/man/man3/TAGC_Predefined_avg.3 \
    doc/man/man3/TAGC_Predefined_bfloat16.3 \
    doc/man/man3/TAGC_Predefined_float16.3 \
    doc/man/man3/TAGC_Reduce_scatter.3 \
    doc/man/man3/TAGC_Reduce_scatter_block.3 \
    doc/man/man3/TAGC_Reduce_scatter_block_c.3 \
    doc/man/man3/TAGC_Reduce_scatter_block_init.3 \
    doc/man/man3/TAGC_Reduce_scatter_block_init_c.3 \
    doc/man/man3/TAGC_Reduce_scatter_c.3 \
    doc/man/man3/TAGC_Reduce_scatter_init.3 \
    doc/man/man3/TAGC_Reduce_scatter_init_c.3 \
    doc/man/man3/TAGC_Request_free.3 \
    doc/man/man3/TAGC_Request_get_mpi.3 \
    doc/man/man3/TAGC_Start.3 \
    doc/man/man3/TAGC_Startall.3 \
    doc/man/man3/TAGC_Tensor_create.3 \
    doc/man/man3/TAGC_Tensor_create_c.3 \
    doc/man/man3/TAGC_Tensor_free.3 \
    doc/man/man3/TAGC_Tensor_get_info.3 \
    doc/man/man3/TAGC_Tensor_get_norm.3 \
    doc/man/man3/TAGC_Tensor_load.3 \
    doc/man/man3/TAGC_Tensor_pack.3 \
    doc/man/man3/TAGC_Tensor_pack_size.3 \
    doc/man/man3/TAGC_Tensor_reset.3 \
    doc/man/man3/TAGC_Tensor_save.3 \
    doc/man/man3/TAGC_Tensor_set_stream.3 \
    doc/man/man3/TAGC_Tensor_unpack.3 \
    doc/man/man3/TAGC_Test.3 \
    doc/man/man3/TAGC_Testall.3 \
    doc/man/man3/TAGC_Wait.3 \
    doc/man/man3/TAGC_Waitall.3 \
    doc/man/man7/tagc.7 \
    doc/man/man7/tagc_env.7

dist_doc_DATA += doc/guide.md doc/algorithms.md doc/performance.md doc/porting.md doc/scale.csv doc/scale.svg
EXTRA_DIST += examples/train.sbatch

# tagc_env(7) is made from the table of settings by a small program; make update-env writes it anew.
check_PROGRAMS += doc/env_page
doc_env_page_SOURCES = doc/env_page.c
doc_env_page_LDADD = libtagc_all.la
dist_check_SCRIPTS += doc/check-env doc/check-readme
TESTS += doc/check-env doc/check-readme
.PHONY: update-env
update-env: doc/env_page
	doc/env_page >$(top_srcdir)/doc/man/man7/tagc_env.7
