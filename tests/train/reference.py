#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# Computes, with PyTorch in double precision, what a tiny GPT of fixed weights must give: loss, gradients and ten steps of
# AdamW. The numbers are kept in reference.h, so that the test itself needs no PyTorch:
#
#     python3 tests/train/reference.py > tests/train/reference.h        (Debian: apt install python3-torch)
#
# Weights and tokens come from a formula on integers, which test_train.c repeats.
import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT, BATCH, STEPS = 2, 2, 16, 11, 8, 4, 10
LR, BETAS, DECAY, CLIP = 0.01, (0.9, 0.99), 0.1, 1.0

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def scramble(i, j):
    """32 bits that depend on both numbers; test_train.c has the same"""
    h = (i * 40503 + j * 2654435761) & 0xFFFFFFFF
    h ^= h >> 15
    h = (h * 2246822519) & 0xFFFFFFFF
    return h ^ (h >> 13)


def numbers(index, count):
    return [(scramble(index, j) % 20001 - 10000) / 10000 for j in range(count)]


def shapes():
    C = WIDTH
    yield 'wte.weight', (VOCABULARY, C)
    yield 'wpe.weight', (CONTEXT, C)
    for layer in range(LAYERS):
        h = f'h.{layer}.'
        yield h + 'ln_1.weight', (C,)
        yield h + 'attn.c_attn.weight', (3 * C, C)
        yield h + 'attn.c_proj.weight', (C, C)
        yield h + 'ln_2.weight', (C,)
        yield h + 'mlp.c_fc.weight', (4 * C, C)
        yield h + 'mlp.c_proj.weight', (C, 4 * C)
    yield 'ln_f.weight', (C,)


weights = {}
for index, (name, shape) in enumerate(shapes()):
    values = torch.tensor(numbers(index, torch.Size(shape).numel())).reshape(shape)
    # 0.25 and 0.5: large enough that every gradient matters
    weights[name] = (1 + 0.25 * values if len(shape) == 1 else 0.5 * values).requires_grad_()


def batch(step):
    tokens = torch.tensor([[scramble(1000 + step, b * (CONTEXT + 1) + t) % VOCABULARY for t in range(CONTEXT + 1)]
                           for b in range(BATCH)])
    return tokens[:, :-1], tokens[:, 1:]


def norm(x, w):
    return F.layer_norm(x, (WIDTH,), w, None, 1e-5)


def loss_of(tokens, targets):
    B, T = tokens.shape
    past = torch.ones(T, T, dtype=torch.bool).tril()
    x = weights['wte.weight'][tokens] + weights['wpe.weight'][:T]
    for layer in range(LAYERS):
        def w(name):
            return weights[f'h.{layer}.{name}.weight']
        q, k, v = (norm(x, w('ln_1')) @ w('attn.c_attn').T).split(WIDTH, dim=2)
        q, k, v = (part.reshape(B, T, HEADS, -1).transpose(1, 2) for part in (q, k, v))
        score = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
        y = score.masked_fill(~past, float('-inf')).softmax(dim=3) @ v
        x = x + y.transpose(1, 2).reshape(B, T, WIDTH) @ w('attn.c_proj').T
        x = x + F.gelu(norm(x, w('ln_2')) @ w('mlp.c_fc').T) @ w('mlp.c_proj').T
    logits = norm(x, weights['ln_f.weight']) @ weights['wte.weight'].T
    return F.cross_entropy(logits.reshape(B * T, -1), targets.reshape(-1))


print('''/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Written by reference.py with PyTorch %s; not to be edited. */
''' % torch.__version__)
for name in 'LAYERS HEADS WIDTH VOCABULARY CONTEXT BATCH STEPS'.split():
    print(f'#define REF_{name} {globals()[name]}')
print(f'#define REF_LR {LR}\n#define REF_DECAY {DECAY}\n#define REF_CLIP {CLIP}\n')

loss = loss_of(*batch(0))
loss.backward()
print(f'static const double ref_loss = {loss.item():.15g};\n')
print('/* The gradient of each parameter: its 2-norm, and its first, middle and last element */')
print('static const struct {\n    const char *name;\n    double norm, first, middle, last;\n} ref_gradient[] = {')
for name, w in weights.items():
    g = w.grad.reshape(-1)
    print(f'    {{"{name}", {g.norm():.15g}, {g[0]:.15g}, {g[len(g) // 2]:.15g}, {g[-1]:.15g}}},')
print('};\n')

optimizer = torch.optim.AdamW([
    {'params': [w for w in weights.values() if w.dim() > 1], 'weight_decay': DECAY},
    {'params': [w for w in weights.values() if w.dim() == 1], 'weight_decay': 0.0}], lr=LR, betas=BETAS)
print('/* Each step: the loss before it, and the norm of the gradient before clipping */')
print('static const double ref_step[][2] = {')
for step in range(STEPS):
    optimizer.zero_grad()
    loss = loss_of(*batch(step))
    loss.backward()
    size = torch.nn.utils.clip_grad_norm_(weights.values(), CLIP)
    optimizer.step()
    print(f'    {{{loss.item():.15g}, {size.item():.15g}}},')
print('};\n')
print('/* After them: the 2-norm of each parameter */')
print('static const double ref_weight[] = {')
for w in weights.values():
    print(f'    {w.norm().item():.15g},')
print('};')
