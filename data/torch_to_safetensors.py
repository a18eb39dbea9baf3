#!/usr/bin/env python3
"""Writes the weights of a PyTorch file into a folder that ./convert reads: data/torch_to_safetensors.py FILE FOLDER

FILE is a .pt, .pth or .bin file, or the pytorch_model.bin.index.json of several. No code in them is run. nanoGPT's ckpt.pt becomes a
GPT-2 with a config.json. Of any other file the configuration and the tokenizer beside it are copied. Needs torch."""
import ctypes, json, os, pickle, shutil, sys

TYPES = {"torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16"}


def load(path):
    """The tensors in the file by name, and nanoGPT's "model_args" where it has them."""
    beside, parts, tensors, sizes = os.path.dirname(path), [os.path.basename(path)], {}, {}
    if path.endswith(".json"):
        parts = sorted(set(json.load(open(path))["weight_map"].values()))
    for part in parts:
        if not part or part != os.path.basename(part):
            sys.exit(f"{path}: names the file {part!r}: expected a file beside it")
        loaded = torch.load(os.path.join(beside, part), map_location="cpu", weights_only=True)
        state = next((loaded[key] for key in ("model", "state_dict") if key in loaded), loaded)
        sizes = loaded.get("model_args", {})
        for name, value in state.items():
            if str(getattr(value, "dtype", "")) in TYPES:  # others are masks and counters
                tensors[name.removeprefix("module.").removeprefix("_orig_mod.")] = value
    return tensors, sizes


def gpt2_of_nanogpt(tensors, sizes):
    """Hugging Face's form of nanoGPT's tensors, whose matrices are (out,in) and may have no biases. Returns config.json."""
    for name, value in list(tensors.items()):
        if ".c_" in name or ".ln_" in name:
            tensors[name] = value.t()
            if not sizes.get("bias", True):
                tensors[name.replace("weight", "bias")] = value.new_zeros(len(value))
    config = {"model_type": "gpt2", "n_positions": sizes["block_size"], "activation_function": "gelu"}
    return config | {key: sizes[key] for key in ("vocab_size", "n_layer", "n_head", "n_embd")}


def save(path, tensors):
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": TYPES[str(value.dtype)], "shape": list(value.shape), "data_offsets": [end, end + value.nbytes]}
        end += value.nbytes
    text = json.dumps(header).encode()
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for value in tensors.values():
            value = value.contiguous()
            file.write(ctypes.string_at(value.data_ptr(), value.nbytes))
    os.rename(path + ".part", path)


def main(path, folder):
    weights, beside = os.path.join(folder, "model.safetensors"), os.path.dirname(path) or "."
    if os.path.exists(weights):
        sys.exit(f"{weights}: exists; choose another folder")
    tensors, sizes = load(path)
    config = gpt2_of_nanogpt(tensors, sizes) if sizes else None
    os.makedirs(folder, exist_ok=True)
    if config:
        json.dump(config, open(os.path.join(folder, "config.json"), "x"))
    elif not os.path.samefile(beside, folder):
        for name in os.listdir(beside):
            if name.endswith((".json", ".txt")) and not name.endswith(".index.json"):
                shutil.copy(os.path.join(beside, name), folder)
    save(weights, tensors)
    print(f"saved {len(tensors)} tensors; next: ./convert {folder}")


if len(sys.argv) != 3:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
try:
    import torch
    main(*sys.argv[1:])
except (OSError, ImportError, ValueError, KeyError, AttributeError, TypeError, RuntimeError, EOFError, pickle.PickleError) as error:
    reason = str(error).splitlines()[0] if str(error) else "it ends too early"
    sys.exit(f"{sys.argv[1]}: cannot read it, or write {sys.argv[2]}: {type(error).__name__}: {reason}")
