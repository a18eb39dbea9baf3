"""Models of Hugging Face's transformers and of nanoGPT's form through ./convert, ./generate and ./train_text, and back: random weights,
made here. Logits and gradients are compared by build/test/oracle. Without torch and transformers it skips, in one line.

    python3 test/python/convert.py BUILD_FOLDER
"""

import json
import os
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers as hf
    from safetensors.numpy import load_file, save_file
    from safetensors import safe_open
except ImportError as missing:
    print(f"skip Python's models: {missing}")
    print("0 passed, 0 failed")
    sys.exit(0)

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
passed = failed = 0


def check(name, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(("ok   " if good else "FAIL ") + name + ("" if good else f": {detail}"))


def run(program, *words, status=0):
    done = subprocess.run([f"{BUILD}/{program}", *words], capture_output=True, text=True)
    if done.returncode != status:
        check(f"{program} {' '.join(words)}", False, f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def randomized(model, deviation=0.1):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * deviation)
    return model.eval()


VOCAB = 300
GPT2 = dict(vocab_size=VOCAB, n_positions=64, n_embd=32, n_layer=2, n_head=4)
MODELS = {
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2)),
    "gpt2, untied, relu": lambda: hf.GPT2LMHeadModel(
        hf.GPT2Config(**GPT2, tie_word_embeddings=False, activation_function="relu", n_inner=40, layer_norm_epsilon=1e-3)
    ),
    "mamba": lambda: hf.MambaForCausalLM(
        hf.MambaConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, state_size=8, use_mambapy=False)
    ),
    "opt": lambda: hf.OPTForCausalLM(
        hf.OPTConfig(vocab_size=VOCAB, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
                     max_position_embeddings=64, word_embed_proj_dim=32)
    ),
    "opt, post": lambda: hf.OPTForCausalLM(
        hf.OPTConfig(vocab_size=VOCAB, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
                     max_position_embeddings=64, word_embed_proj_dim=32, do_layer_norm_before=False)
    ),
    "openai-gpt": lambda: hf.OpenAIGPTLMHeadModel(hf.OpenAIGPTConfig(**GPT2)),
    "mpt": lambda: hf.MptForCausalLM(hf.MptConfig(vocab_size=VOCAB, d_model=36, n_layers=2, n_heads=6, max_seq_len=64)),
    "bloom": lambda: hf.BloomForCausalLM(hf.BloomConfig(vocab_size=VOCAB, hidden_size=36, n_layer=2, n_head=6)),
}


def with_gradients_as_weights(model):
    """The same model whose weights are their gradients: converted as weights are, they stand under our names."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    return model


def fixture(name, checkpoint, gradients, tokens, targets, logits, loss):
    with safe_open(checkpoint, "np") as file:
        metadata = file.metadata()
        tensors = {f"param/{key}": file.get_tensor(key) for key in file.keys()}
    for key, value in load_file(gradients).items():
        tensors[f"grad/{key}"] = value.astype("float64")
    tensors["input/tokens"] = tokens.numpy().astype("int32")
    tensors["input/targets"] = targets.numpy().astype("int32")
    tensors["output/logits"] = logits.detach().numpy().astype("float64")
    tensors["output/loss"] = loss.detach().numpy().astype("float64").reshape(1)
    save_file(tensors, name, metadata={key: metadata[key] for key in ("model", "config")} | {"source": "transformers"})


def compare(folder, name, make):
    model = randomized(make()).double()
    path = f"{folder}/{name.replace(' ', '').replace(',', '-')}"
    model.float().save_pretrained(path)
    run("convert", path, "--save", f"{path}.safetensors")
    model = model.double()
    tokens, targets = torch.randint(VOCAB, (2, 40)), torch.randint(VOCAB, (2, 40))
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    with_gradients_as_weights(model).float().save_pretrained(path + "-gradients")
    run("convert", path + "-gradients", "--save", f"{path}-gradients.safetensors")
    fixture(f"{path}-fixture.safetensors", f"{path}.safetensors", f"{path}-gradients.safetensors", tokens, targets, logits,
            loss)
    said = subprocess.run([f"{BUILD}/test/oracle", f"{path}-fixture.safetensors"], capture_output=True, text=True)
    lines = said.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("FAIL") and not (name == "mpt" and ".bias:" in line)]  # it has none
    check(f"{name}: logits and gradients", len(lines) > 10 and not wrong, "; ".join(wrong) + said.stderr)


with tempfile.TemporaryDirectory() as folder:
    torch.manual_seed(1)
    for name, make in MODELS.items():
        compare(folder, name, make)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
