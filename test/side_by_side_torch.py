"""PyTorch's half of side_by_side.py: what test/side_by_side.cpp does, with the weights and the batch that it wrote.

    python3 test/side_by_side_torch.py FILE VARIANT THREADS LEARNING_RATE [DEVICE]

The models are written from the formulas at the top of src/models/*.cpp; parameters have the names that they have there.
"""

import json
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F


def norm(x):  # plain: no epsilon, no gain, no bias
    return F.layer_norm(x, x.shape[-1:], eps=0.0)


def see_past(T):  # (T,T): what position t (a row) sees
    return torch.ones(T, T, dtype=torch.bool).tril()


class RelationBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.left = nn.Linear(c["width"], c["hidden"], bias=False)
        self.right = nn.Linear(c["width"], c["hidden"])
        self.out = nn.Linear(c["hidden"], c["width"])
        self.register_buffer("share", see_past(c["context"]) / torch.arange(1, c["context"] + 1)[:, None], persistent=False)

    def forward(self, x):
        r = norm(x)
        return x + self.out(norm(self.sums(self.left(r), self.right(r))))


class CausalRN(RelationBlock):
    def sums(self, p, q):  # z_j = 1/j Σ_{i≤j} exp(norm(p_i + q_j))
        pairs = norm(p[:, None] + q[:, :, None]).exp()  # (B,j,i,H)
        return (pairs * self.share[:, :, None]).sum(2)


class LinearCausalRN(RelationBlock):
    def sums(self, p, q):  # z_j = 1/j exp(q_j) Σ_{i≤j} exp(p_i); normalized, no exponent is beyond √H
        return norm(q).exp() * norm(p).exp().cumsum(1) * self.share[:, :1]


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c["heads"]
        self.qkv = nn.Linear(c["width"], 3 * c["width"], bias=c["qkv_bias"])
        self.out = nn.Linear(c["width"], c["width"], bias=c["out_bias"])
        self.register_buffer("seen", see_past(c["context"]), persistent=False)

    def forward(self, r):
        B, T, D = r.shape
        q, k, v = self.qkv(r).view(B, T, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)  # (B,heads,T,n) each
        return self.out(self.mix(q, k, v).transpose(1, 2).reshape(B, T, D))


class SoftmaxAttention(Attention):
    def mix(self, q, k, v):
        score = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return score.masked_fill(~self.seen, -torch.inf).softmax(-1) @ v


class FusedAttention(Attention):
    def mix(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class LinearAttention(Attention):
    def mix(self, q, k, v):  # φ(x) = elu(x) + 1
        weight = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-1, -2) * self.seen
        return weight @ v / weight.sum(-1, keepdim=True)


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up = nn.Linear(c["width"], c["hidden"])
        self.down = nn.Linear(c["hidden"], c["width"])
        self.approximate = {"erf": "none", "tanh": "tanh"}[c["gelu"]]

    def forward(self, r):
        return self.down(F.gelu(self.up(r), approximate=self.approximate))


def make_norm(c):
    return nn.LayerNorm(c["width"], eps=c.get("norm_epsilon", 1e-5)) if c["norm"] == "affine" else norm


class TransformerBlock(nn.Module):
    def __init__(self, c, attention):
        super().__init__()
        self.norm_1, self.attention = make_norm(c), attention(c)
        self.norm_2, self.mlp = make_norm(c), Mlp(c)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class LanguageModel(nn.Module):
    def __init__(self, c, blocks, final_norm):
        super().__init__()
        self.token_embedding = nn.Embedding(c["vocab"], c["width"])
        self.position_embedding = nn.Embedding(c["context"], c["width"])
        self.blocks = nn.Sequential(*blocks)
        self.final_norm = final_norm
        self.head = nn.Linear(c["width"], c["vocab"], bias=False)

    def forward(self, tokens, targets):  # (B,T) each; -1 does not count
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        logits = self.head(self.final_norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def relations(block):
    return lambda c: LanguageModel(c, [block(c) for _ in range(c["layers"])], norm)


def transformer(attention):
    return lambda c: LanguageModel(c, [TransformerBlock(c, attention) for _ in range(c["layers"])], make_norm(c))


# As functions of a configuration.
MODELS = {"causal_rn": relations(CausalRN), "linear_causal_rn": relations(LinearCausalRN),
          "transformer": transformer(SoftmaxAttention), "transformer sdpa": transformer(FusedAttention),
          "linear_transformer": transformer(LinearAttention)}


def main(path, variant, threads, rate, device="cpu"):
    torch.set_num_threads(int(threads))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # the other side computes in fp32
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    tensors = load_file(path, device)
    tokens, targets = tensors.pop("input/tokens").long(), tensors.pop("input/targets").long()
    model = MODELS[metadata["model"] + (" sdpa" if "sdpa" in variant else "")](json.loads(metadata["config"]))
    model.load_state_dict(tensors)  # every name and shape, and no other
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=float(rate), weight_decay=0.0, fused=True)
    forward = torch.compile(model, dynamic=False) if "compiled" in variant else model
    print(f"PyTorch {torch.__version__}" + (f", {torch.cuda.get_device_name()}" if device == "cuda" else ""), flush=True)
    for _ in sys.stdin:
        loss = forward(tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"{loss.item():.9g}", flush=True)


main(*sys.argv[1:])
