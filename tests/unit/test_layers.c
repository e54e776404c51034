/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Layer rules: how their text is taken apart, and what the built-in set says to the names that models give. */
#include "unit.h"

#include "util/layers.h"

static void given_model_names_expect_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *name, *kind; /* NULL: left alone */
    } names[] = {
        /* GPT-2 */
        {"wte.weight", NULL},
        {"transformer.wte.weight", NULL},
        {"wte", NULL},
        {"wpe.weight", "position table"},
        {"transformer.wpe.weight", "position table"},
        {"wpe", "position table"},
        {"transformer.h.0.attn.c_attn.weight", "attention"},
        {"h.11.attn.c_attn.weight", "attention"},
        {"h.0.attn.c_attn.bias", "bias"},
        {"transformer.h.0.attn.c_proj.weight", "attention"},
        {"h.0.ln_1.weight", "norm"},
        {"h.0.ln_1.bias", "bias"},
        {"h.0.ln_2.weight", "norm"},
        {"transformer.ln_f.weight", "norm"},
        {"ln_f.weight", "norm"},
        {"ln_f", "norm"},
        {"ln_1", "norm"},
        {"h.0.mlp.c_fc.weight", NULL},
        {"h.0.mlp.c_proj.weight", NULL},
        {"h.0.mlp.c_fc.bias", "bias"},
        {"lm_head.weight", NULL},
        /* Llama */
        {"model.embed_tokens.weight", NULL},
        {"model.layers.0.self_attn.q_proj.weight", "attention"},
        {"model.layers.0.self_attn.k_proj.weight", "attention"},
        {"model.layers.0.self_attn.v_proj.weight", "attention"},
        {"model.layers.31.self_attn.o_proj.weight", "attention"},
        {"model.layers.0.input_layernorm.weight", "norm"},
        {"model.layers.0.post_attention_layernorm.weight", "norm"},
        {"model.layers.0.self_attn.q_norm.weight", "norm"},
        {"model.layers.0.mlp.gate_proj.weight", NULL},
        {"model.layers.0.mlp.up_proj.weight", NULL},
        {"model.layers.0.mlp.down_proj.weight", NULL},
        {"model.norm.weight", "norm"},
        {"norm.weight", "norm"},
        {"layers.0.attention.wq.weight", "attention"},
        {"layers.0.wo.weight", "attention"},
        {"layers.0.attention_norm.weight", "norm"},
        {"layers.0.feed_forward.w1.weight", NULL},
        {"layers.0.ffn_norm.weight", "norm"},
        {"tok_embeddings.weight", NULL},
        {"output.weight", NULL},
        /* Megatron */
        {"embedding.word_embeddings.weight", NULL},
        {"language_model.embedding.word_embeddings.weight", NULL},
        {"embedding.position_embeddings.weight", "position table"},
        {"encoder.layers.0.self_attention.linear_qkv.weight", "attention"},
        {"encoder.layers.0.self_attention.linear_qkv.bias", "bias"},
        {"encoder.layers.0.self_attention.linear_qkv.layer_norm_weight", "norm"},
        {"encoder.layers.0.self_attention.linear_proj.weight", "attention"},
        {"decoder.layers.0.mlp.linear_fc1.layer_norm_weight", "norm"},
        {"decoder.layers.0.mlp.linear_fc1.layer_norm_bias", "bias"},
        {"decoder.layers.0.mlp.linear_fc1.weight", NULL},
        {"decoder.layers.0.mlp.linear_fc1.bias", "bias"},
        {"decoder.layers.0.mlp.linear_fc2.weight", NULL},
        {"decoder.final_layernorm.weight", "norm"},
        {"output_layer.weight", NULL},
        {"transformer.layers.0.attention.query_key_value.weight", "attention"},
        {"transformer.layers.0.query_key_value.weight", "attention"},
        {"transformer.layers.0.attention.dense.weight", "attention"},
        {"transformer.layers.0.mlp.dense_h_to_4h.weight", NULL},
        {"transformer.layers.0.mlp.dense_4h_to_h.weight", NULL},
        {"transformer.layers.0.mlp.dense_4h_to_h.bias", "bias"},
        /* Others */
        {"gpt_neox.layers.0.attention.query_key_value.weight", "attention"},
        {"gpt_neox.embed_out.weight", NULL},
        {"model.decoder.embed_positions.weight", "position table"},
        {"word_embeddings_layernorm.weight", "norm"},
        {"bert.encoder.layer.0.attention.self.query.weight", "attention"},
        {"bert.encoder.layer.0.attention.output.LayerNorm.weight", "norm"},
        {"bert.encoder.layer.0.intermediate.dense.weight", NULL},
        {"bert.embeddings.position_embeddings.weight", "position table"},
        {"encoder.block.0.layer.0.SelfAttention.q.weight", "attention"},
        {"transformer.blocks.0.norm_1.weight", "norm"},
        {"transformer.blocks.0.attn.Wqkv.weight", "attention"},
        {"transformer.blocks.0.ffn.up_proj.weight", NULL},
        {"q_proj.weight", "attention"},
        {"vit.pos_embed", "position table"},
        {"h/0/mlp/c_fc/w", NULL},
        {"bias", "bias"},
        /* No transformer's */
        {"field", NULL},
        {"", NULL},
        {"normal_stress", NULL},
        {"enormous", NULL},
        {"kiln_5", NULL},
        {"biased", NULL},
        {"swpe", NULL},
        {"velocity.x", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *values = NULL, *kind = NULL;
        const char *rule = tagci_transformer_rule(names[i].name, &values, &kind);
        if (!rule != !names[i].kind)
            fail_msg("%s: %s", names[i].name, rule ? rule : "left alone");
        if (!rule)
            continue;
        if (strcmp(kind, names[i].kind) != 0)
            fail_msg("%s: taken for %s by %s", names[i].name, kind, rule);
        assert_string_equal(values, "algorithm=dense");
    }
    const char *values, *kind;
    assert_null(tagci_transformer_rule(NULL, &values, &kind));
}

static void given_text_expect_rules(void **state)
{
    (void)state;
    const char *text = " *mlp* : value = int4 , sparsity=0:0, 50:0.8,backend=^cuda,openmp ;;[[:alpha:]]*:warmup=3;"
                       "a\\:b:;\n transformer ; ";
    struct tagci_rule rule;
    char why[200], name[32], value[64];
    size_t done = 0;
    assert_int_equal(tagci_rule_next(&text, &rule, why, sizeof why), 1);
    assert_string_equal(rule.pattern, "*mlp*");
    static const char *const pairs[][2] = {{"value", "int4"}, {"sparsity", "0:0, 50:0.8"}, {"backend", "^cuda,openmp"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tagci_rule_value(&rule, &done, name, sizeof name, value, sizeof value, why, sizeof why), 1);
        assert_string_equal(name, pairs[i][0]);
        assert_string_equal(value, pairs[i][1]);
    }
    assert_int_equal(tagci_rule_value(&rule, &done, name, sizeof name, value, sizeof value, why, sizeof why), 0);
    assert_true(tagci_rule_matches(&rule, "h.0.mlp.c_fc"));
    assert_false(tagci_rule_matches(&rule, NULL));

    assert_int_equal(tagci_rule_next(&text, &rule, why, sizeof why), 1);
    assert_string_equal(rule.pattern, "[[:alpha:]]*");
    done = 0;
    assert_int_equal(tagci_rule_value(&rule, &done, name, sizeof name, value, sizeof value, why, sizeof why), 1);
    assert_string_equal(name, "warmup");
    assert_true(tagci_rule_matches(&rule, "x1"));
    assert_false(tagci_rule_matches(&rule, "1x"));

    assert_int_equal(tagci_rule_next(&text, &rule, why, sizeof why), 1);
    done = 0;
    assert_int_equal(tagci_rule_value(&rule, &done, name, sizeof name, value, sizeof value, why, sizeof why), 0);
    assert_true(tagci_rule_matches(&rule, "a:b"));

    assert_int_equal(tagci_rule_next(&text, &rule, why, sizeof why), 1);
    assert_true(rule.transformer);
    assert_int_equal(tagci_rule_next(&text, &rule, why, sizeof why), 0);
}

static void given_empty_pattern_expect_empty_name(void **state)
{
    (void)state;
    const char *text = ":value=int4";
    struct tagci_rule rule;
    char why[200];
    assert_int_equal(tagci_rule_next(&text, &rule, why, sizeof why), 1);
    assert_true(tagci_rule_matches(&rule, NULL));
    assert_true(tagci_rule_matches(&rule, ""));
    assert_false(tagci_rule_matches(&rule, "a"));
}

static void given_broken_text_expect_no_overrun(void **state)
{
    (void)state;
    static const char *const texts[] = {"[",       "[:", "[[:", "\\",  "a\\",     "[]:b",
                                        "[^]:x=1", ":",  ";",   "a:=", "a:b=1,c", "[[:x:]:y=1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *copy = test_malloc(strlen(texts[i]) + 1); /* guarded */
        strcpy(copy, texts[i]);
        const char *at = copy;
        struct tagci_rule rule;
        char why[200], name[32], value[64];
        for (int k = 0; k < 10 && tagci_rule_next(&at, &rule, why, sizeof why) == 1; k++) {
            size_t done = 0;
            for (int v = 0; v < 10; v++)
                if (tagci_rule_value(&rule, &done, name, sizeof name, value, sizeof value, why, sizeof why) != 1)
                    break;
        }
        assert_true((size_t)(at - copy) <= strlen(texts[i]));
        test_free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_model_names_expect_kinds),
        cmocka_unit_test(given_text_expect_rules),
        cmocka_unit_test(given_empty_pattern_expect_empty_name),
        cmocka_unit_test(given_broken_text_expect_no_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
