/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Errors before, in and after MPI; versions, which need no MPI; the library's messages. MPI is up between the second and
 * the last test (one process, no launcher). */
#include "unit.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tagc.h"
#include "util/error.h"
#include "util/log.h"

static const int own[] = {TAGC_ERR_MISMATCH, TAGC_ERR_SETTING, TAGC_ERR_TENSOR,      TAGC_ERR_REQUEST, TAGC_ERR_BUSY,
                          TAGC_ERR_BACKEND,  TAGC_ERR_WIRE,    TAGC_ERR_UNSUPPORTED, TAGC_ERR_FILE};
static const int mpis[] = {MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_OP,     MPI_ERR_BUFFER,
                           MPI_ERR_COMM,  MPI_ERR_ARG,  MPI_ERR_NO_MEM, MPI_ERR_OTHER};

static int class_of(int code)
{
    int class = -1;
    assert_int_equal(TAGC_Error_class(code, &class), MPI_SUCCESS);
    return class;
}

static const char *text_of(int code)
{
    static char text[TAGC_MAX_ERROR_STRING];
    int length = -1;
    assert_int_equal(TAGC_Error_string(code, text, &length), MPI_SUCCESS);
    assert_int_equal(length, strlen(text));
    return text;
}

static void given_no_mpi_expect_bare_classes(void **state)
{
    (void)state;
    assert_int_equal(tagci_error(MPI_ERR_COUNT, "lost"), MPI_ERR_COUNT);
    assert_int_equal(tagci_error(TAGC_ERR_BUSY, "lost"), MPI_ERR_OTHER);
    assert_int_equal(class_of(MPI_ERR_COUNT), MPI_ERR_COUNT);
    assert_int_equal(class_of(MPI_SUCCESS), MPI_SUCCESS);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        assert_int_equal(class_of(own[i]), own[i]);
        assert_true(strncmp(text_of(own[i]), "TAGC: ", 6) == 0);
    }
    assert_true(strlen(text_of(MPI_ERR_COUNT)) > 0);
    assert_int_equal(tagci_error_raise(MPI_COMM_NULL, MPI_ERR_COUNT), MPI_ERR_COUNT);
    int length;
    char text[TAGC_MAX_ERROR_STRING];
    assert_int_equal(TAGC_Error_class(0, NULL), MPI_ERR_ARG);
    assert_int_equal(TAGC_Error_string(0, NULL, &length), MPI_ERR_ARG);
    assert_int_equal(TAGC_Error_string(0, text, NULL), MPI_ERR_ARG);
}

static void given_no_mpi_expect_versions(void **state)
{
    (void)state;
    int version = -1, subversion = -1, length = -1;
    char text[TAGC_MAX_LIBRARY_VERSION_STRING];
    assert_int_equal(TAGC_Get_version(&version, &subversion), MPI_SUCCESS);
    assert_int_equal(version, TAGC_VERSION);
    assert_int_equal(subversion, TAGC_SUBVERSION);
    assert_int_equal(TAGC_Get_library_version(text, &length), MPI_SUCCESS);
    assert_int_equal(length, strlen(text));
    assert_null(strchr(text, '\n'));
    assert_non_null(strstr(text, "TAGC "));
    assert_non_null(strstr(text, "MPI"));
    assert_int_equal(TAGC_Get_version(NULL, &subversion), MPI_ERR_ARG);
    assert_int_equal(TAGC_Get_version(&version, NULL), MPI_ERR_ARG);
    assert_int_equal(TAGC_Get_library_version(NULL, &length), MPI_ERR_ARG);
    assert_int_equal(TAGC_Get_library_version(text, NULL), MPI_ERR_ARG);
    TAGC_Tensor tensor = (TAGC_Tensor)(uintptr_t)12345;
    assert_int_equal(TAGC_Tensor_free(&tensor), MPI_SUCCESS); /* before MPI as after it: nothing can be there */
    assert_ptr_equal(tensor, TAGC_TENSOR_NULL);
    assert_true(TAGC_FLOAT16 == MPI_DATATYPE_NULL);
    assert_true(TAGC_AVG == MPI_OP_NULL);
}

/* Of the leak sanitizer, where it is there. What MPI starts with is not ours, and a part of it may be unloaded before the
 * end, so that no suppression knows its name. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static int start_mpi(void **state)
{
    (void)state;
    int up;
    MPI_Initialized(&up);
    if (!up) {
        if (__lsan_disable)
            __lsan_disable();
        MPI_Init(NULL, NULL);
        if (__lsan_enable)
            __lsan_enable();
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return 0;
}

static void given_classes_expect_full_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof own[0] + sizeof mpis / sizeof mpis[0]; i++) {
        size_t n_own = sizeof own / sizeof own[0];
        int class = i < n_own ? own[i] : mpis[i - n_own];
        int code = tagci_error(class, "TAGC_Call: tensor \"w\": argument %d", (int)i);
        char text[64], mpi[MPI_MAX_ERROR_STRING];
        int length;
        snprintf(text, sizeof text, "TAGC_Call: tensor \"w\": argument %d", (int)i);
        assert_int_equal(class_of(code), class);
        assert_string_equal(text_of(code), text);
        assert_int_equal(MPI_Error_string(code, mpi, &length), MPI_SUCCESS);
        assert_string_equal(mpi, text);
        assert_int_not_equal(code, class);
        assert_int_equal(tagci_error(class, "%s", text), code); /* no second code for the same */
        /* MPI's class of the code is one that TAGC_Error_class knows, too. */
        int mpi_class;
        assert_int_equal(MPI_Error_class(code, &mpi_class), MPI_SUCCESS);
        assert_int_equal(class_of(mpi_class), class);
        assert_true(strlen(text_of(mpi_class)) > 0);
    }
    assert_int_equal(class_of(MPI_ERR_TRUNCATE), MPI_ERR_TRUNCATE);
    char longest[2 * TAGC_MAX_ERROR_STRING];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    int code = tagci_error(TAGC_ERR_WIRE, "%s", longest);
    assert_int_equal(strlen(text_of(code)), TAGC_MAX_ERROR_STRING - 1);
}

static int handled, handled_code;
static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handled++;
    handled_code = *code;
}

static void given_handler_expect_call(void **state)
{
    (void)state;
    MPI_Errhandler h;
    MPI_Comm_create_errhandler(handler, &h);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, h);
    int code = tagci_error(TAGC_ERR_WIRE, "damaged");
    assert_int_equal(tagci_error_raise(MPI_COMM_SELF, code), code);
    assert_int_equal(handled, 1);
    assert_int_equal(handled_code, code);
    assert_int_equal(tagci_error_raise(MPI_COMM_SELF, MPI_SUCCESS), MPI_SUCCESS);
    assert_int_equal(handled, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, h); /* where there is no communicator */
    assert_int_equal(tagci_error_raise(MPI_COMM_NULL, code), code);
    assert_int_equal(handled, 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&h);
}

static void given_many_errors_expect_bounded_codes(void **state)
{
    (void)state;
    static int codes[3000];
    int seen = 0;
    for (int i = 0; i < 3000; i++) {
        int code = codes[i] = tagci_error(TAGC_ERR_BUSY, "number %d", i);
        char text[32];
        snprintf(text, sizeof text, "number %d", i);
        assert_string_equal(text_of(code), text);
        assert_int_equal(class_of(code), TAGC_ERR_BUSY);
        seen += i > 0 && code == codes[0];
    }
    assert_true(seen > 0); /* codes come back */
    /* The latest hundred are all there, and another class still gets codes of its own. */
    for (int i = 2900; i < 3000; i++) {
        char text[32];
        snprintf(text, sizeof text, "number %d", i);
        assert_string_equal(text_of(codes[i]), text);
    }
    int code = tagci_error(MPI_ERR_INFO, "a class that was not used before");
    assert_string_equal(text_of(code), "a class that was not used before");
    assert_int_equal(class_of(code), MPI_ERR_INFO);
}

static void *make_errors(void *arg)
{
    int wrong = 0;
    for (int i = 0; i < 300; i++) {
        int code = tagci_error(own[(size_t)i % 9], "thread %d error %d", *(int *)arg, i % 20);
        wrong += tagci_error_class(code) != own[(size_t)i % 9];
    }
    *(int *)arg = wrong;
    return NULL;
}

static void given_threads_expect_right_classes(void **state)
{
    (void)state;
    pthread_t thread[4];
    int arg[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, make_errors, &arg[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(arg[i], 0);
    }
}

static void given_trace_expect_lines(void **state)
{
    (void)state;
    char name[64], file[64], line[128];
    snprintf(name, sizeof name, "trace-%ld-%%r.tmp", (long)getpid());
    snprintf(file, sizeof file, "trace-%ld-0.tmp", (long)getpid());
    tagci_trace("", "nothing");
    tagci_trace(name, "line %d", 1);
    tagci_trace(name, "line %d", 2);
    FILE *f = fopen(file, "r"); /* lines are there at once */
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "tagc: rank 0: line 1\n");
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "tagc: rank 0: line 2\n");
    assert_null(fgets(line, sizeof line, f));
    fclose(f);
    remove(file);
}

/* Only so many files are kept open, and the first that is not is named once. */
static void given_too_many_traces_expect_one_word(void **state)
{
    (void)state;
    char name[300] = "/dev/", said[64], line[512];
    snprintf(said, sizeof said, "said-%ld.tmp", (long)getpid());
    int kept = dup(STDERR_FILENO);
    assert_non_null(freopen(said, "w", stderr));
    for (int i = 0; i < 70; i++) {
        strcpy(name + 5 + 2 * i, "null"); /* another name each time: /dev/./././null */
        tagci_trace(name, "line");
        strcpy(name + 5 + 2 * i, "./");
    }
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    FILE *f = fopen(said, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_non_null(strstr(line, "is not written"));
    assert_null(fgets(line, sizeof line, f));
    fclose(f);
    remove(said);
}

static void given_finalize_expect_life_after(void **state)
{
    (void)state;
    int code = tagci_error(TAGC_ERR_FILE, "before the end");
    double held;
    TAGC_Tensor tensor;
    assert_int_equal(TAGC_Tensor_create(MPI_COMM_SELF, "left", 100, MPI_FLOAT, MPI_INFO_NULL, &tensor), MPI_SUCCESS);
    assert_true(TAGC_FLOAT16 != MPI_DATATYPE_NULL && TAGC_BFLOAT16 != TAGC_FLOAT16 && TAGC_AVG != MPI_OP_NULL);
    MPI_Finalize();
    assert_int_equal(TAGC_Tensor_free(&tensor), MPI_SUCCESS);
    assert_ptr_equal(tensor, TAGC_TENSOR_NULL);
    assert_int_equal(TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_WORKSPACE_BYTES, &held), MPI_SUCCESS);
    assert_int_equal(held, 0);
    assert_string_equal(text_of(code), "before the end");
    assert_int_equal(class_of(code), TAGC_ERR_FILE);
    assert_int_equal(tagci_error(MPI_ERR_COUNT, "after the end"), MPI_ERR_COUNT);
    assert_int_equal(class_of(tagci_error(TAGC_ERR_BUSY, "after the end")), TAGC_ERR_BUSY);
    assert_true(TAGC_FLOAT16 == MPI_DATATYPE_NULL);
    given_no_mpi_expect_versions(NULL);
}

static void given_no_code_expect_a_text(void **state)
{
    static const int no_codes[] = {-1, -5, -100000, INT_MIN, INT_MAX};
    (void)state;
    int theirs, class;
    assert_int_equal(MPI_Add_error_class(&class), MPI_SUCCESS);
    assert_int_equal(MPI_Add_error_code(class, &theirs), MPI_SUCCESS);
    assert_int_equal(MPI_Add_error_string(theirs, "of the program's own"), MPI_SUCCESS);
    assert_string_equal(text_of(theirs), "of the program's own");
    assert_int_equal(class_of(theirs), class);
    for (size_t i = 0; i < sizeof no_codes / sizeof no_codes[0]; i++) {
        assert_int_equal(class_of(no_codes[i]), MPI_ERR_UNKNOWN);
        assert_non_null(strstr(text_of(no_codes[i]), "not an error code"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_no_mpi_expect_bare_classes),
        cmocka_unit_test(given_no_mpi_expect_versions),
        cmocka_unit_test_setup(given_classes_expect_full_texts, start_mpi),
        cmocka_unit_test_setup(given_no_code_expect_a_text, start_mpi),
        cmocka_unit_test_setup(given_handler_expect_call, start_mpi),
        cmocka_unit_test_setup(given_many_errors_expect_bounded_codes, start_mpi),
        cmocka_unit_test_setup(given_threads_expect_right_classes, start_mpi),
        cmocka_unit_test_setup(given_trace_expect_lines, start_mpi),
        cmocka_unit_test_setup(given_too_many_traces_expect_one_word, start_mpi),
        cmocka_unit_test_setup(given_finalize_expect_life_after, start_mpi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
