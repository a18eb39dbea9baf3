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

SCRIPT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../data/torch_to_safetensors.py"))
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


def torch_to_safetensors(path, folder, status=0):
    done = subprocess.run([sys.executable, SCRIPT, path, folder], capture_output=True, text=True)
    if done.returncode != status:
        check(f"torch_to_safetensors.py {path}", False, f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stderr


def oracle(name, fixture, forgiven=""):
    """build/test/oracle on one fixture, to its end; what it says of tensors that no file of ours has is forgiven."""
    done = subprocess.run([f"{BUILD}/test/oracle", fixture], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith("FAIL")]
    wrong = [line for line in failed if not forgiven or forgiven not in line]
    ended = len(lines) > 10 and done.returncode == (1 if failed else 0) and lines[-1].endswith(f" {len(failed)} failed")
    check(name, ended and not wrong, f"status {done.returncode}: " + "; ".join(wrong or lines[-1:]) + done.stderr)


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
    "mpt": lambda: hf.MptForCausalLM(hf.MptConfig(vocab_size=VOCAB, d_model=36, n_layers=2, n_heads=6, max_seq_len=64)),
    "bloom": lambda: hf.BloomForCausalLM(hf.BloomConfig(vocab_size=VOCAB, hidden_size=36, n_layer=2, n_head=6)),
}


def with_gradients_as_weights(model):
    """The same model whose weights are their gradients: converted as weights are, they stand under our names."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    return model


def compare_with_oracle(name, model, path, checkpoint, inputs, targets, forgiven=""):
    """Logits, loss and gradients of the model, in double precision, as a fixture for build/test/oracle. `checkpoint`: its weights, ours."""
    logits = model(inputs["model"]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
    loss.backward()
    with_gradients_as_weights(model).float().save_pretrained(path + "-gradients")
    run("convert", path + "-gradients", "--save", f"{path}-gradients.safetensors")
    with safe_open(checkpoint, "np") as file:
        metadata = file.metadata()
        tensors = {f"param/{key}": file.get_tensor(key) for key in file.keys() if not key.startswith("adamw.")}
    for key, value in load_file(f"{path}-gradients.safetensors").items():
        tensors[f"grad/{key}"] = value.astype("float64")
    tensors |= inputs["ours"]
    tensors["input/targets"] = targets.numpy().astype("int32")
    tensors["output/logits"] = logits.detach().numpy().astype("float64")
    tensors["output/loss"] = loss.detach().numpy().astype("float64").reshape(1)
    save_file(tensors, f"{path}-fixture.safetensors", {key: metadata[key] for key in ("model", "config")} | {"source": "transformers"})
    oracle(name, f"{path}-fixture.safetensors", forgiven)


def random_tokens(length):
    tokens = torch.randint(VOCAB, (2, length))
    return {"model": tokens, "ours": {"input/tokens": tokens.numpy().astype("int32")}}, torch.randint(VOCAB, (2, length))


def converted(folder, name, model):
    """Saves the model as transformers does, and converts it; the same model in double precision, and its path."""
    path = f"{folder}/{name.replace(' ', '').replace(',', '-')}"
    model.save_pretrained(path)
    run("convert", path, "--save", f"{path}.safetensors")
    return model.double(), path


def compare(folder, name, make):
    model, path = converted(folder, name, randomized(make()))
    compare_with_oracle(f"{name}: logits and gradients", model, path, f"{path}.safetensors", *random_tokens(40),
                        ".bias:" if name == "mpt" else "")


def images(folder):
    """A ViT of small pictures. Its patches' bias is part of our places, whose gradient is then another."""
    model, path = converted(folder, "vit", randomized(hf.ViTForImageClassification(
        hf.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=8, patch_size=2,
                     num_labels=5))))
    pixels, targets = torch.randn(3, 3, 8, 8).double(), torch.randint(5, (3,))
    patches = pixels.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 4, 5, 1)  # image, row, column, pixel's row and column, channel
    ours = {"input/patches": patches.reshape(3, 16, 12).float().numpy().copy()}
    compare_with_oracle("vit: logits and gradients", model, path, f"{path}.safetensors", {"model": pixels, "ours": ours}, targets,
                        "grad/position_embedding.weight")


def greedy(model, tokens, count):
    tokens = torch.tensor([tokens])
    with torch.no_grad():
        for _ in range(count):
            tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], 1)
    return tokens[0].tolist()


def same_greedy_text(name, model, tokenizer, checkpoint, prompt):
    ids = greedy(model, tokenizer.encode(prompt).ids, 20)
    expected = tokenizer.decode(ids, skip_special_tokens=False).split("<|endoftext|>")[0]
    said = subprocess.run([f"{BUILD}/generate", checkpoint, "--prompt", prompt, "--temperature", "0", "--length", "20", "--quiet"],
                          capture_output=True).stdout.decode("utf-8", "replace")
    check(f"{name}: the same greedy text", said == expected + "\n", f"{said!r}, expected {expected!r}")


def byte_level_tokenizer(folder):
    """A tokenizer as tokenizers trains and saves it."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        show_progress=False, vocab_size=VOCAB, special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.save(f"{folder}/tokenizer.json")
    return tokenizer


TEXT = "The stone remembers what the river says; the river forgets what the stone has said. " * 40


def whole_way(folder, name, make):
    """In, the same greedy text, fine-tuning, and back with the logits that it then has."""
    path, checkpoint = f"{folder}/{name}-whole", f"{folder}/{name}-whole.safetensors"
    model = randomized(make())
    model.save_pretrained(path)
    tokenizer = byte_level_tokenizer(path)
    run("convert", path, "--save", checkpoint)
    same_greedy_text(name, model, tokenizer, checkpoint, "The stone")
    run("inspect", "receptive-field", checkpoint, "--length", "20", "--samples", "2", "--out", f"{folder}/{name}-field")
    open(f"{folder}/text.txt", "w").write(TEXT)
    here = os.getcwd()
    os.chdir(folder)
    said = run("train_text", "--init", checkpoint, "--data", "text.txt", "--steps", "30", "--eval-every", "30", "--name", name,
               "--context", "32", "--batch", "4", "--lr", "3e-3", "--threads", "1", "--sample-length", "0")
    losses = [float(line.split(",")[1]) for line in open(f"runs/{name}/log.csv").read().splitlines()[1:-1]]
    check(f"{name}: learns", losses[-1] < 0.7 * losses[0], f"{losses[0]} to {losses[-1]}")
    run("convert", f"runs/{name}", "--to", "hf", "--save", f"{name}-back")
    os.chdir(here)
    back = hf.AutoModelForCausalLM.from_pretrained(f"{folder}/{name}-back").double().eval()
    compare_with_oracle(f"{name}: back in transformers, with the run's logits and gradients", back, f"{folder}/{name}-back",
                        f"{folder}/runs/{name}/model.safetensors", *random_tokens(32))


def nano_gpt(folder, name, dtype, bias):
    """nanoGPT's checkpoint of a GPT-2 whose function is the exact GELU; its matrices are (out,in)."""
    model = randomized(hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, activation_function="gelu"))).to(dtype).float()
    state = {}
    for key, value in model.state_dict().items():
        if not bias and key.endswith(".bias"):
            value.zero_()
            continue
        if not key.endswith((".attn.bias", ".masked_bias")):
            state["_orig_mod." + key] = (value.t().contiguous() if ".c_" in key and value.dim() == 2 else value.clone()).to(dtype)
    arguments = dict(n_layer=2, n_head=4, n_embd=32, block_size=64, bias=bias, vocab_size=VOCAB, dropout=0.0)
    torch.save({"model": state, "model_args": arguments, "iter_num": 5, "best_val_loss": torch.tensor(3.5),
                "config": {"dataset": "x", "learning_rate": 6e-4}}, f"{folder}/{name}.pt")
    os.makedirs(f"{folder}/tokens", exist_ok=True)
    tokenizer = byte_level_tokenizer(f"{folder}/tokens")
    torch_to_safetensors(f"{folder}/{name}.pt", f"{folder}/{name}-folder")
    run("convert", f"{folder}/{name}-folder", "--save", f"{folder}/{name}.safetensors", "--tokenizer", f"{folder}/tokens")
    same_greedy_text(name, model, tokenizer, f"{folder}/{name}.safetensors", "The river")
    run("convert", f"{folder}/{name}.safetensors", "--to", "hf", "--save", f"{folder}/{name}-hf")
    back = hf.AutoModelForCausalLM.from_pretrained(f"{folder}/{name}-hf")
    same = all(torch.equal(value, back.state_dict()[key]) for key, value in model.state_dict().items())
    check(f"{name}: back in transformers, bit for bit", same)


def torch_files(folder):
    """A folder with pytorch_model.bin, in parts with an index, and in the form before PyTorch 1.6; and what the script refuses."""
    model = randomized(MODELS["gpt2"]())
    state = model.state_dict()
    names = list(state)
    for kind in ("whole", "parts", "old"):
        path = f"{folder}/torch-{kind}"
        os.makedirs(path)
        model.config.save_pretrained(path)
        byte_level_tokenizer(path)
        file = f"{path}/pytorch_model.bin"
        if kind == "parts":
            parts = {name: f"pytorch_model-0000{i % 2 + 1}-of-00002.bin" for i, name in enumerate(names)}
            for part in set(parts.values()):
                torch.save({name: state[name] for name in names if parts[name] == part}, f"{path}/{part}")
            file += ".index.json"
            json.dump({"metadata": {}, "weight_map": parts}, open(file, "w"))
        else:
            torch.save(state, file, _use_new_zipfile_serialization=kind == "whole")
        said = run("convert", path, "--save", f"{path}.safetensors", status=1)
        check(f"pytorch_model.bin, {kind}: the line that names the script", f"torch_to_safetensors.py {file} FOLDER" in said, said)
        torch_to_safetensors(file, f"{path}-folder")
        run("convert", f"{path}-folder", "--save", f"{path}.safetensors")
        run("convert", f"{path}.safetensors", "--to", "hf", "--save", f"{path}-back")
        back = hf.AutoModelForCausalLM.from_pretrained(f"{path}-back").state_dict()
        check(f"pytorch_model.bin, {kind}: comes back, bit for bit", all(torch.equal(state[name], back[name]) for name in names))
        said = torch_to_safetensors(file, f"{path}-folder", status=1)
        check(f"pytorch_model.bin, {kind}: nothing is replaced", "exists; choose another folder" in said, said)
    index = f"{folder}/torch-parts/pytorch_model.bin.index.json"
    for name, content in (("a file elsewhere", '{"weight_map": {"a": "../torch-whole/pytorch_model.bin"}}'), ("no JSON", "{"),
                          ("no list", "[]")):
        open(index, "w").write(content)
        said = torch_to_safetensors(index, f"{folder}/refused", status=1)
        check(f"an index, {name}: one line", len(said.splitlines()) == 1 and said.startswith(index), said)
    for name, content in (("junk", b"junk\n"), ("empty", b""),
                          ("half", open(f"{folder}/torch-whole/pytorch_model.bin", "rb").read()[:5000]),
                          ("that runs code", b"\x80\x02cposix\nsystem\nq\x00X\x04\x00\x00\x00trueq\x01\x85q\x02Rq\x03.")):
        open(f"{folder}/bad.pt", "wb").write(content)
        said = torch_to_safetensors(f"{folder}/bad.pt", f"{folder}/refused", status=1)
        check(f"a file {name}: one line", len(said.splitlines()) == 1 and said.startswith(f"{folder}/bad.pt: "), said)
    check("nothing is left of refused files", not os.path.exists(f"{folder}/refused"))


def saved_again(folder):
    """A checkpoint that Python reads and writes again is still one; with other numbers it is not."""
    path = f"{folder}/gpt2.safetensors"
    with safe_open(path, "np") as file:
        metadata, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}
    save_file(tensors, f"{folder}/again.safetensors", metadata=metadata)
    before, after = run("inspect", "info", path), run("inspect", "info", f"{folder}/again.safetensors")
    check("saved again by Python", [line for line in before.splitlines() if line.startswith("weights")][:1] ==
          [line for line in after.splitlines() if line.startswith("weights")][:1] != [], after)
    tensors["final_norm.bias"] = tensors["final_norm.bias"] + 1
    save_file(tensors, f"{folder}/changed.safetensors", metadata=metadata)
    said = run("inspect", "info", f"{folder}/changed.safetensors", status=1)
    check("changed by Python, with the checksums of before", "checksum of the data" in said, said)


with tempfile.TemporaryDirectory() as folder:
    torch.manual_seed(1)
    for name, make in MODELS.items():
        compare(folder, name, make)
    images(folder)
    for name in ("gpt2", "mamba"):
        whole_way(folder, name, MODELS[name])
    nano_gpt(folder, "nanoGPT", torch.float32, True)
    nano_gpt(folder, "nanoGPT-bf16-without-biases", torch.bfloat16, False)
    torch_files(folder)
    saved_again(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
