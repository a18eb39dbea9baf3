"""Tokenizers of others: the same tokens as transformers' and tokenizers', from their files through ./tokenize, and from what ./convert writes.
Without these packages it skips, in one line.

    python3 test/python/token_ids.py BUILD_FOLDER
    python3 test/python/token_ids.py --write > FILE      test/oracle/token_ids.json (small cases with their tokens, for test/exchange.cpp)
                                                         with the tokens of the packages that are installed
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
try:
    import tokenizers as hf
    import transformers
except ImportError as missing:
    print(f"skip tokens of Python's tokenizers: {missing}")
    print("0 passed, 0 failed")
    sys.exit(0)

BYTES = [chr(b) for b in (*range(33, 127), *range(161, 173), *range(174, 256))] + [chr(256 + i) for i in range(68)]
MERGES = ["t h", "th e", "Ġ the", "e r", "th er", "Ġ t"]


def vocabulary(before=(), between=()):
    """Bytes and what MERGES make, with other tokens before and between them."""
    words = [*before, *BYTES[:100], *between, *BYTES[100:], *(m.replace(" ", "") for m in MERGES)]
    return {word: number for number, word in enumerate(words)}


def special(content, **flags):
    return dict(content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) | flags


def template(*single):
    names = [part for part in single if part != "$A"]
    parts = [{"Sequence": {"id": "A", "type_id": 0}} if part == "$A" else {"SpecialToken": {"id": part, "type_id": 0}} for part in single]
    return lambda ids: {"type": "TemplateProcessing", "single": parts,
                        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                        "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in names}}


def roberta(cls, sep):
    return lambda ids: {"type": "RobertaProcessing", "sep": [sep, ids[sep]], "cls": [cls, ids[cls]], "trim_offsets": True,
                        "add_prefix_space": False}


LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def tokenizer_json(vocab, added=(), around=None, space=False):
    ids = dict(vocab)
    for token in added:
        ids.setdefault(token["content"], len(ids))
    return {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "decoder": LEVEL,
            "added_tokens": sorted(({"id": ids[token["content"]]} | token for token in added), key=lambda token: token["id"]),
            "pre_tokenizer": LEVEL | {"add_prefix_space": space}, "post_processor": around and around(ids),
            "model": {"type": "BPE", "vocab": vocab, "merges": MERGES}}


def cases():
    """Name, files of a folder, texts."""
    with open("test/oracle/token_ids.json", encoding="utf-8") as file:
        for case in json.load(file)["cases"]:
            yield case["name"], case["files"], [text for text, _ in case["texts"]]


def write_folder(folder, files):
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8", newline="") as file:
            file.write(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))


def reference(folder, files):
    """Text → tokens: tokenizer.json by tokenizers; other files by transformers."""
    if "tokenizer.json" in files:
        tokenizer = hf.Tokenizer.from_file(f"{folder}/tokenizer.json")
        return lambda text: tokenizer.encode(text).ids
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(folder)
    return lambda text: tokenizer(text).input_ids


def write():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, files, texts) in enumerate(cases()):
            write_folder(f"{folder}/{number}", files)
            encode = reference(f"{folder}/{number}", files)
            rows.append({"name": name, "files": files, "texts": [[text, encode(text)] for text in texts]})
    versions = f"tokenizers {hf.__version__}, transformers {transformers.__version__}"
    print(json.dumps({"source": versions, "cases": rows}, ensure_ascii=False, separators=(",", ":")))


def ours(build, tokenizer, text, folder):
    with open(f"{folder}/text", "w", encoding="utf-8", newline="") as file:
        file.write(text)
    done = subprocess.run([f"{build}/tokenize", "--tokenizer", tokenizer, "--out", f"{folder}/shard", "--force", f"{folder}/text"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return done.stdout + done.stderr
    data = open(f"{folder}/shard_000000.bin", "rb").read()[1024:]
    return list(struct.unpack(f"<{len(data) // 2}H", data))


def random_case(seed):
    """A tokenizer.json with added tokens of all kinds, and texts that have them. What is no end of a text for us may stand anywhere."""
    dice = random.Random(seed)
    words = dice.sample(["<s>", "[PAD]", "<|user|>", "  ", "\n\n", "ab", "bc", "abc", "x", "<mask>", "the", "a b", "_q", "\u00e9!"], dice.randint(0, 6))
    flag = lambda part: dice.random() < part
    added = [special(word, lstrip=flag(0.2), rstrip=flag(0.2), normalized=flag(0.3), special=flag(0.6)) for word in words]
    inside = [word for word in words if word not in ("the", "x") and flag(0.5)]
    cut = dice.randint(0, len(inside))
    around = dice.choice([None, template(words[0], "$A"), template("$A", words[-1]), roberta(words[0], words[-1])]) if words else None
    vocab = vocabulary(inside[:cut], inside[cut:])
    parts = [*words, "the", " the", "there", " ", "  ", "\n", "\t", "a", "b", "\u00e9", "7", "x", "\u3000", "'s", "_", "\u65e5\u672c"]
    texts = ["".join(dice.choice(parts) for _ in range(dice.randint(1, 25))) for _ in range(2)]
    return {"tokenizer.json": tokenizer_json(vocab, added, around, flag(0.3))}, texts


def model_of(folder, tokens):
    """A GPT-2 with as many tokens, so that ./convert has something to convert."""
    import numpy
    from safetensors.numpy import save_file

    config = {"model_type": "gpt2", "vocab_size": tokens, "n_positions": 8, "n_embd": 2, "n_layer": 1, "n_head": 1}
    write_folder(folder, {"config.json": config | {"bos_token_id": None, "eos_token_id": [1, 2]}})
    shapes = {"wte.weight": (tokens, 2), "wpe.weight": (8, 2), "ln_f.weight": (2,), "ln_f.bias": (2,)}
    for name, shape in (("attn.c_attn", (2, 6)), ("attn.c_proj", (2, 2)), ("mlp.c_fc", (2, 8)), ("mlp.c_proj", (8, 2))):
        shapes |= {f"h.0.{name}.weight": shape, f"h.0.{name}.bias": shape[1:]}
    for name in ("ln_1", "ln_2"):
        shapes |= {f"h.0.{name}.weight": (2,), f"h.0.{name}.bias": (2,)}
    save_file({f"transformer.{name}": numpy.ones(shape, "float32") for name, shape in shapes.items()}, f"{folder}/model.safetensors")


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
    failed, counts = [], {}

    def check(kind, name, got, expected):
        counts[kind] = counts.get(kind, 0) + 1
        if got != expected:
            failed.append(f"{kind}: {name}: {got}, expected {expected}")

    with tempfile.TemporaryDirectory() as folder:
        every = [*cases(), *((f"random {seed}", *random_case(seed)) for seed in range(40))]
        for number, (name, files, texts) in enumerate(every):
            path = f"{folder}/{number}"
            write_folder(path, files)
            encode = reference(path, files)
            for text in texts:
                check("in", f"{name}: {text!r}", ours(build, path, text, folder), encode(text))
            model_of(path, 300)
            for words in (("--save", f"{path}.safetensors"), ("--to", "hf", "--save", f"{path}-back")):
                source = path if words[0] == "--save" else f"{path}.safetensors"
                subprocess.run([f"{build}/convert", source, *words], capture_output=True, check=True)
            back = transformers.AutoTokenizer.from_pretrained(f"{path}-back")
            raw = hf.Tokenizer.from_file(f"{path}-back/tokenizer.json")
            for text in texts:
                check("and back", f"{name}: {text!r}", [raw.encode(text).ids, back(text).input_ids], [encode(text)] * 2)
            check("ends", name, transformers.GenerationConfig.from_pretrained(f"{path}-back").eos_token_id, [1, 2])
    for line in failed[:10]:
        print("FAIL " + line)
    print("ok   " + ", ".join(f"{kind} {count}" for kind, count in counts.items()))
    print(f"{sum(counts.values()) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed))


write() if "--write" in sys.argv else main()
