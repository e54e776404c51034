/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Settings: bounds, messages, precedence, what is refused, the hash. */
#include "unit.h"

#include <locale.h>
#include <stdlib.h>

#include "core/type.h"
#include "util/settings.h"

static char why[600];
static struct tagci_settings s;

/* An info of key, value, key, value, ..., NULL. */
static int pair_get(void *context, const char *name, char *value, size_t size)
{
    for (const char **p = context; *p; p += 2)
        if (strcmp(p[0] + 5, name) == 0 && strncmp(p[0], "tagc_", 5) == 0) {
            snprintf(value, size, "%s", p[1]);
            return 1;
        }
    return 0;
}

static int pair_key(void *context, int i, char *key, size_t size)
{
    const char **p = context;
    for (int k = 0; p[2 * k]; k++)
        if (k == i) {
            snprintf(key, size, "%s", p[2 * k]);
            return 1;
        }
    return 0;
}

static enum tagci_setting_error with(const char *name, const char **pairs)
{
    static const char *nothing[] = {NULL};
    struct tagci_info_reader r = {pair_get, pair_key, pairs ? pairs : nothing};
    return tagci_settings_resolve(name, &r, &s, why, sizeof why);
}

static enum tagci_setting_error with_one(const char *key, const char *value)
{
    const char *pairs[] = {key, value, NULL};
    return with("field", pairs);
}

static int clean(void **state)
{
    (void)state;
    for (int i = 0; i < TAGCI_SETTINGS; i++) {
        char name[64] = "TAGC_";
        for (size_t k = 0; k <= strlen(tagci_setting_name(i)); k++)
            name[5 + k] = (char)toupper((unsigned char)tagci_setting_name(i)[k]);
        unsetenv(name);
    }
    unsetenv("TAGC_NONSENSE");
    unsetenv("TAGC_TEST_ANYTHING");
    return 0;
}

static void given_nothing_expect_defaults(void **state)
{
    (void)state;
    assert_int_equal(with("field", NULL), TAGCI_SETTING_OK);
    static const char *const expected[TAGCI_SETTINGS] = {
        "auto",  "0", "owner",       "unset", "sampled", "native", "auto", "auto",  "true", "lossless",
        "16384", "0", "transformer", "auto",  "poll",    "false",  "off",  "unset", "unset"};
    for (int i = 0; i < TAGCI_SETTINGS; i++) {
        char text[TAGCI_PRINT_MAX];
        tagci_setting_print(&s, i, text, sizeof text);
        assert_string_equal(text, expected[i]);
        assert_int_equal(s.source[i], TAGCI_FROM_DEFAULT);
        assert_int_equal(tagci_setting_find(tagci_setting_name(i)), i);
        assert_true(strlen(tagci_setting_help(i)) > 20);
        assert_true(strlen(tagci_setting_values(i)) > 3);
    }
    assert_int_equal(tagci_settings_resolve(NULL, NULL, &s, why, sizeof why), TAGCI_SETTING_OK);
}

/* Every text in `good` is taken and prints as its second half; every one in `bad` is refused with a message that holds
 * the text, the source and the setting's name. */
static void given_texts_expect_bounds(void **state)
{
    (void)state;
    static const char *const good[][3] = {
        {"tagc_algorithm", "direct", "direct"},
        {"tagc_algorithm", " DENSE ", "dense"},
        {"tagc_sparsity", "0", "0"},
        {"tagc_sparsity", "0.9999", "0.9999"},
        {"tagc_sparsity", ".5", "0.5"},
        {"tagc_sparsity", "8e-1", "0.8"},
        {"tagc_sparsity", "0.1234567890123", "0.1234567890123"},
        {"tagc_sparsity", "0:0, 50:0.8,1000:0.95", "0:0,50:0.8,1000:0.95"},
        {"tagc_sparsity", "0:0.5", "0.5"},
        {"tagc_granularity", "tensor", "tensor"},
        {"tagc_granularity", "768", "768"},
        {"tagc_threshold", "1e-12", "1e-12"},
        {"tagc_threshold", "unset", "unset"},
        {"tagc_value", "int4", "int4"},
        {"tagc_value", "ternary", "ternary"},
        {"tagc_index", "bitmap", "bitmap"},
        {"tagc_compress_ratio", "1.5", "1.5"},
        {"tagc_error_feedback", "0", "false"},
        {"tagc_error_feedback", "Yes", "true"},
        {"tagc_gather", "native", "native"},
        {"tagc_min_count", "0", "0"},
        {"tagc_min_count", "9223372036854775807", "9223372036854775807"},
        {"tagc_warmup", "100", "100"},
        {"tagc_layers", "none", "none"},
        {"tagc_backend", "openmp", "openmp"},
        {"tagc_backend", "cuda, openmp", "cuda,openmp"},
        {"tagc_backend", "^cuda", "^cuda"},
        {"tagc_checksum", "true", "true"},
        {"tagc_verify", "error", "error"},
        {"tagc_trace", "/tmp/my trace.txt", "/tmp/my trace.txt"},
        {"tagc_trace", "unset", "unset"},
        {"tagc_tuning", "unset", "unset"},
        {"tagc_sparsity", "", "0"}, /* as if it were not there */
    };
    static const char *const bad[][2] = {
        {"tagc_algorithm", "fast"},
        {"tagc_algorithm", "direct,sketch"},
        {"tagc_sparsity", "1.5"},
        {"tagc_sparsity", "1"},
        {"tagc_sparsity", "-0.1"},
        {"tagc_sparsity", "nan"},
        {"tagc_sparsity", "0x1p-1"},
        {"tagc_sparsity", "0.5x"},
        {"tagc_sparsity", "50:0.8"},
        {"tagc_sparsity", "0:0,50"},
        {"tagc_sparsity", "0:0,50:0.8,50:0.9"},
        {"tagc_sparsity", "0:0,"},
        {"tagc_sparsity", "0:"},
        {"tagc_sparsity", "0:0,5:1"},
        {"tagc_granularity", "0"},
        {"tagc_granularity", "-1"},
        {"tagc_granularity", "rows"},
        {"tagc_threshold", "0"},
        {"tagc_threshold", "-1"},
        {"tagc_threshold", "inf"},
        {"tagc_threshold", "1e999"},
        {"tagc_value", "int2"},
        {"tagc_compress_ratio", "1"},
        {"tagc_error_feedback", "maybe"},
        {"tagc_min_count", "-1"},
        {"tagc_min_count", "9223372036854775808"},
        {"tagc_warmup", "1.5"},
        {"tagc_backend", "gpu"},
        {"tagc_backend", "openmp,"},
        {"tagc_backend", "^"},
        {"tagc_verify", "on"},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char text[TAGCI_PRINT_MAX];
        if (with_one(good[i][0], good[i][1]) != TAGCI_SETTING_OK)
            fail_msg("%s=%s: %s", good[i][0], good[i][1], why);
        int k = tagci_setting_find(good[i][0] + 5);
        tagci_setting_print(&s, k, text, sizeof text);
        assert_string_equal(text, good[i][2]);
        assert_int_equal(s.source[k], good[i][1][0] ? TAGCI_FROM_INFO : TAGCI_FROM_DEFAULT);
        /* What is printed can be given. */
        assert_int_equal(with_one(good[i][0], text), TAGCI_SETTING_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (with_one(bad[i][0], bad[i][1]) != TAGCI_SETTING_BAD)
            fail_msg("%s=%s was taken", bad[i][0], bad[i][1]);
        char start[100];
        snprintf(start, sizeof start, "%s=%s (info): %s must be ", bad[i][0], bad[i][1], bad[i][0] + 5);
        if (strncmp(why, start, strlen(start)) != 0)
            fail_msg("message \"%s\" does not begin with \"%s\"", why, start);
    }
    char steps[1000] = "0:0";
    for (int i = 1; i <= TAGCI_SCHEDULE_MAX; i++)
        snprintf(steps + strlen(steps), sizeof steps - strlen(steps), ",%d:0.5", i);
    assert_int_equal(with_one("tagc_sparsity", steps), TAGCI_SETTING_BAD);
    char longer[TAGCI_TEXT_MAX + 1];
    memset(longer, 'x', sizeof longer);
    longer[TAGCI_TEXT_MAX] = 0;
    assert_int_equal(with_one("tagc_trace", longer), TAGCI_SETTING_BAD);
    longer[TAGCI_TEXT_MAX - 1] = 0;
    assert_int_equal(with_one("tagc_trace", longer), TAGCI_SETTING_OK);
}

static void given_environment_expect_message_and_rank(void **state)
{
    (void)state;
    const char *info[] = {"tagc_sparsity", "0.25", "tagc_layers", "fi*:sparsity=0.5,value=int8", "other", "x", NULL};
    assert_int_equal(with("field", info), TAGCI_SETTING_OK);
    assert_true(s.sparsity.share[0] == 0.5);
    assert_int_equal(s.source[TAGCI_SET_SPARSITY], TAGCI_FROM_LAYERS);
    assert_int_equal(s.value, TAGCI_VALUE_INT8);
    assert_int_equal(with("wheel", info), TAGCI_SETTING_OK); /* the rule is another's */
    assert_true(s.sparsity.share[0] == 0.25);
    assert_int_equal(s.source[TAGCI_SET_SPARSITY], TAGCI_FROM_INFO);
    setenv("TAGC_SPARSITY", "0.75", 1);
    assert_int_equal(with("field", info), TAGCI_SETTING_OK);
    assert_true(s.sparsity.share[0] == 0.75);
    assert_int_equal(s.source[TAGCI_SET_SPARSITY], TAGCI_FROM_ENVIRONMENT);
    assert_int_equal(s.value, TAGCI_VALUE_INT8);

    setenv("TAGC_SPARSITY", "1.5", 1);
    assert_int_equal(with("field", NULL), TAGCI_SETTING_BAD);
    assert_string_equal(why, "TAGC_SPARSITY=1.5 (environment): sparsity must be 0 .. 0.9999, or a schedule like "
                             "0:0,50:0.8");
    setenv("TAGC_SPARSITY", "", 1); /* as if unset */
    assert_int_equal(with("field", NULL), TAGCI_SETTING_OK);
    assert_int_equal(s.source[TAGCI_SET_SPARSITY], TAGCI_FROM_DEFAULT);

    setenv("TAGC_TEST_ANYTHING", "1", 1);
    assert_int_equal(with("field", NULL), TAGCI_SETTING_OK);
    setenv("TAGC_NONSENSE", "1", 1);
    assert_int_equal(with("field", NULL), TAGCI_SETTING_BAD);
    assert_non_null(strstr(why, "TAGC_NONSENSE"));
    assert_non_null(strstr(why, "sparsity, granularity"));
    assert_int_equal(tagci_settings_exact(&s, why, sizeof why), TAGCI_SETTING_BAD);
    unsetenv("TAGC_NONSENSE");

    setenv("TAGC_LAYERS", "wh*:sparsity=0.1", 1); /* the environment's rules stand instead of info's */
    assert_int_equal(with("field", info), TAGCI_SETTING_OK);
    assert_true(s.sparsity.share[0] == 0.25);
    assert_int_equal(with("wheel", info), TAGCI_SETTING_OK);
    assert_true(s.sparsity.share[0] == 0.1);
}

static void given_built_in_rule_expect_lowest_rank(void **state)
{
    (void)state;
    const char *info[] = {"tagc_sparsity", "0.9", NULL};
    assert_int_equal(with("h.0.attn.c_attn.weight", info), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_DENSE);
    assert_int_equal(s.source[TAGCI_SET_ALGORITHM], TAGCI_FROM_TRANSFORMER);
    assert_true(s.sparsity.share[0] == 0.9);
    const char *named[] = {"tagc_algorithm", "direct", NULL};
    assert_int_equal(with("h.0.attn.c_attn.weight", named), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_DIRECT);
    const char *none[] = {"tagc_layers", "none", NULL};
    assert_int_equal(with("h.0.attn.c_attn.weight", none), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_AUTO);
    /* The user's rule in front of the built-in set. */
    const char *mixed[] = {"tagc_layers", "*attn*:value=int4,sparsity=0;transformer", "tagc_sparsity", "0.9", NULL};
    assert_int_equal(with("h.0.attn.c_attn.weight", mixed), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_AUTO);
    assert_int_equal(s.value, TAGCI_VALUE_INT4);
    assert_true(s.sparsity.share[0] == 0);
    assert_int_equal(s.source[TAGCI_SET_SPARSITY], TAGCI_FROM_LAYERS);
    assert_int_equal(with("h.0.ln_1.weight", mixed), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_DENSE);
    assert_int_equal(s.source[TAGCI_SET_ALGORITHM], TAGCI_FROM_TRANSFORMER);
    assert_int_equal(with("h.0.mlp.c_fc.weight", mixed), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_AUTO);
    assert_true(s.sparsity.share[0] == 0.9);
    /* Values for what the built-in set lets be. */
    const char *level[] = {"tagc_layers", "transformer:sparsity=0.95,algorithm=direct", "tagc_sparsity", "0.9", NULL};
    assert_int_equal(with("h.0.mlp.c_fc.weight", level), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_DIRECT);
    assert_true(s.sparsity.share[0] == 0.95);
    assert_int_equal(s.source[TAGCI_SET_SPARSITY], TAGCI_FROM_LAYERS);
    assert_int_equal(with("h.0.attn.c_attn.weight", level), TAGCI_SETTING_OK);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_DENSE);
    assert_int_equal(s.source[TAGCI_SET_ALGORITHM], TAGCI_FROM_TRANSFORMER);
}

static void given_unknown_names_expect_errors(void **state)
{
    (void)state;
    const char *key[] = {"tagc_sparseness", "0.5", NULL};
    assert_int_equal(with("field", key), TAGCI_SETTING_BAD);
    assert_non_null(strstr(why, "tagc_sparseness"));
    static const char *const bad[][2] = {
        {"*mlp*:sparseness=0.5", "sparseness"},
        {"*mlp*:layers=none", "rules cannot hold rules"},
        {"*mlp*:sparsity=1.5", "sparsity=1.5 (rule \"*mlp*\" of layers): sparsity must be"},
        {"*mlp*", "is no rule"},
        {"*mlp*:sparsity", "is not name=value"},
        {"*mlp*:sparsity=", "has no value"},
        {"*mlp*:0.5,sparsity=0.5", "is not name=value"},
        {"none;*mlp*:sparsity=0.5", "is no rule"},
        {"transformer;*mlp*:sparsity=0.5", "must be the last"},
        {"transformer:sparsity=1.5", "sparsity=1.5"},
        {"a:value=int4;b:value=int3", "rule \"b\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        /* No matter which tensor it is, and from where. */
        assert_int_equal(with_one("tagc_layers", bad[i][0]), TAGCI_SETTING_BAD);
        assert_non_null(strstr(why, bad[i][1]));
        setenv("TAGC_LAYERS", bad[i][0], 1);
        assert_int_equal(with("a", NULL), TAGCI_SETTING_BAD);
        assert_non_null(strstr(why, bad[i][1]));
        assert_non_null(strstr(why, "layers"));
        unsetenv("TAGC_LAYERS");
    }
}

static void given_hidden_mistake_expect_error(void **state)
{
    (void)state;
    setenv("TAGC_SPARSITY", "0.5", 1);
    assert_int_equal(with_one("tagc_sparsity", "7"), TAGCI_SETTING_BAD);
}

static void given_combinations_expect_refusal(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *pairs[] = {"tagc_value", "int4", "tagc_algorithm", i ? "pack" : "sketch", NULL};
        assert_int_equal(with("field", pairs), TAGCI_SETTING_BAD);
        assert_non_null(strstr(why, "value=int4"));
        assert_non_null(strstr(why, pairs[3]));
        pairs[1] = "native";
        assert_int_equal(with("field", pairs), TAGCI_SETTING_OK);
    }
}

static void given_costs_expect_file_read(void **state)
{
    (void)state;
    char name[] = "/tmp/tagc-costs-XXXXXX";
    static const char *const bad[] = {"kernel.encode",   "kernel.encode 1e-9 2", "kernel.encode -1",
                                      "kernel.encode 1", "kernel.nonsense 1e-9", "kernel.encode 1e-9x"};
    FILE *f = fdopen(mkstemp(name), "w");
    assert_non_null(f);
    assert_int_equal(with_one("tagc_min_count", "1"), TAGCI_SETTING_OK);
    double built_in = s.costs.decode;
    uint64_t hash = tagci_settings_hash(&s);
    fprintf(f, "# comment\n\n  kernel.encode 2.5e-9 # another\nnetwork.dense 1e-8\n");
    fclose(f);
    const char *pairs[] = {"tagc_tuning", name, "tagc_min_count", "1", NULL};
    assert_int_equal(with("field", pairs), TAGCI_SETTING_OK);
    assert_true(s.costs.encode == 2.5e-9 && s.costs.network.dense == 1e-8 && s.costs.decode == built_in);
    assert_true(tagci_settings_hash(&s) != hash);
    hash = tagci_setting_hash(&s, TAGCI_SET_TUNING);
    strcpy(s.tuning, "another name");
    assert_true(tagci_setting_hash(&s, TAGCI_SET_TUNING) == hash);
    /* what is written can be read, and means the same */
    f = fopen(name, "w");
    tagci_costs_write(f, &s.costs);
    fclose(f);
    struct tagci_costs again;
    assert_int_equal(tagci_costs_read(name, &again, why, sizeof why), 0);
    assert_memory_equal(&again, &s.costs, sizeof again);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        f = fopen(name, "w");
        fprintf(f, "node.byte 1e-9\n%s\n", bad[i]);
        fclose(f);
        assert_int_equal(with("field", pairs), TAGCI_SETTING_BAD);
        assert_non_null(strstr(why, "line 2"));
    }
    assert_int_equal(tagci_costs_read("/dev/zero", &again, why, sizeof why), -1);
    remove(name);
    assert_int_equal(with("field", pairs), TAGCI_SETTING_BAD);
    assert_non_null(strstr(why, name));
}

static void given_no_tensor_expect_exact(void **state)
{
    (void)state;
    setenv("TAGC_SPARSITY", "0.9", 1);
    setenv("TAGC_VALUE", "int4", 1);
    setenv("TAGC_THRESHOLD", "3", 1);
    setenv("TAGC_ALGORITHM", "direct", 1);
    assert_int_equal(tagci_settings_exact(&s, why, sizeof why), TAGCI_SETTING_OK);
    assert_int_equal(s.sparsity.n, 1);
    assert_true(s.sparsity.share[0] == 0 && s.threshold == 0);
    assert_int_equal(s.value, TAGCI_VALUE_NATIVE);
    assert_int_equal(s.algorithm, TAGCI_ALGORITHM_DIRECT);
    static const struct {
        const char *asked;
        int becomes;
    } gathers[] = {{"int8", TAGCI_GATHER_LOSSLESS},
                   {"bfloat16", TAGCI_GATHER_LOSSLESS},
                   {"lossless", TAGCI_GATHER_LOSSLESS},
                   {"native", TAGCI_GATHER_NATIVE}};
    for (size_t i = 0; i < sizeof gathers / sizeof gathers[0]; i++) {
        setenv("TAGC_GATHER", gathers[i].asked, 1);
        assert_int_equal(tagci_settings_exact(&s, why, sizeof why), TAGCI_SETTING_OK);
        assert_int_equal(s.gather, gathers[i].becomes);
    }
}

static void given_schedule_expect_share_of_call(void **state)
{
    (void)state;
    assert_int_equal(with_one("tagc_sparsity", "0:0,50:0.8,1000:0.95"), TAGCI_SETTING_OK);
    static const struct {
        int64_t call;
        double share;
    } at[] = {{0, 0}, {49, 0}, {50, 0.8}, {999, 0.8}, {1000, 0.95}, {INT64_MAX, 0.95}};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        assert_true(tagci_settings_share(&s, at[i].call) == at[i].share);
    assert_int_equal(with_one("tagc_sparsity", "0.3"), TAGCI_SETTING_OK);
    assert_true(tagci_settings_share(&s, 0) == 0.3 && tagci_settings_share(&s, 1 << 30) == 0.3);
}

static void given_settings_expect_hash_of_shared_ones(void **state)
{
    (void)state;
    assert_int_equal(with("field", NULL), TAGCI_SETTING_OK);
    uint64_t plain = tagci_settings_hash(&s);
    static const char *const differ[][2] = {
        {"tagc_algorithm", "direct"}, {"tagc_sparsity", "0.0001"},  {"tagc_granularity", "4"},
        {"tagc_threshold", "1"},      {"tagc_value", "int4"},       {"tagc_index", "bitmap"},
        {"tagc_compress_ratio", "2"}, {"tagc_error_feedback", "0"}, {"tagc_gather", "native"},
        {"tagc_min_count", "1"},      {"tagc_warmup", "1"},         {"tagc_layers", "none"},
        {"tagc_checksum", "true"},    {"tagc_verify", "report"},    {"tagc_selection", "exact"}};
    uint64_t seen[32] = {plain};
    for (size_t i = 0; i < sizeof differ / sizeof differ[0]; i++) {
        assert_int_equal(with_one(differ[i][0], differ[i][1]), TAGCI_SETTING_OK);
        seen[i + 1] = tagci_settings_hash(&s);
        for (size_t k = 0; k <= i; k++)
            assert_true(seen[k] != seen[i + 1]);
    }
    static const char *const same[][2] = {
        {"tagc_trace", "x"}, {"tagc_backend", "openmp"}, {"tagc_sparsity", "0:0.0"}, {"tagc_algorithm", "auto"}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_int_equal(with_one(same[i][0], same[i][1]), TAGCI_SETTING_OK);
        assert_true(tagci_settings_hash(&s) == plain);
    }
}

static void given_decimal_comma_expect_same_numbers(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        skip();
    char text[TAGCI_PRINT_MAX];
    assert_int_equal(with_one("tagc_sparsity", "0.25"), TAGCI_SETTING_OK);
    tagci_setting_print(&s, TAGCI_SET_SPARSITY, text, sizeof text);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "0.25");
    assert_true(s.sparsity.share[0] == 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(given_nothing_expect_defaults, clean),
        cmocka_unit_test_setup(given_texts_expect_bounds, clean),
        cmocka_unit_test_setup(given_environment_expect_message_and_rank, clean),
        cmocka_unit_test_setup(given_built_in_rule_expect_lowest_rank, clean),
        cmocka_unit_test_setup(given_unknown_names_expect_errors, clean),
        cmocka_unit_test_setup(given_hidden_mistake_expect_error, clean),
        cmocka_unit_test_setup(given_combinations_expect_refusal, clean),
        cmocka_unit_test_setup(given_costs_expect_file_read, clean),
        cmocka_unit_test_setup(given_no_tensor_expect_exact, clean),
        cmocka_unit_test_setup(given_schedule_expect_share_of_call, clean),
        cmocka_unit_test_setup(given_settings_expect_hash_of_shared_ones, clean),
        cmocka_unit_test_setup(given_decimal_comma_expect_same_numbers, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
