"""The programs of docs/python.md, on a small run; their loss against ours. Without torch, safetensors and pandas it skips, in one line.

    python3 test/python/documentation.py BUILD_FOLDER
"""

import os
import re
import subprocess
import sys
import tempfile

try:
    import pandas  # noqa: F401
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as missing:
    print(f"skip docs/python.md: {missing}")
    print("0 passed, 0 failed")
    sys.exit(0)

build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
programs = re.findall(r"```python\n(.*?)```", open("docs/python.md").read(), re.S)
passed = failed = 0


def check(name, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(("ok   " if good else "FAIL ") + name + ("" if good else f": {detail}"))


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + (done.stderr if done.returncode else "")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    said(f"{build}/train_text", "--name", "python", "--steps", "8", "--batch", "4", "--sample-length", "0", "--threads", "1",
         "--eval-every", "4", "--eval-samples", "8")
    open("LICENSE", "w").write("One day a stone said what the river says.\n" * 100)
    outputs = [said(sys.executable, "-c", program) for program in programs]
    check("a run", "transformer after 8 steps" in outputs[0] and "blocks.3.mlp.down.weight" in outputs[0], outputs[0][-600:])
    ours = re.search(r"validation loss ([0-9.]+)", said(f"{build}/train_text", "--evaluate", "runs/python", "--data", "LICENSE"))
    theirs = re.search(r"loss ([0-9.]+)", outputs[1])
    check("the same loss in PyTorch", ours and theirs and abs(float(ours[1]) - float(theirs[1])) < 2e-4,
          f"{ours and ours[1]}, PyTorch {theirs and theirs[1]}; {outputs[1][-600:]}")
    check("a log", "eval_loss" in outputs[2] and len(outputs[2].splitlines()) >= 3, outputs[2][-600:])
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
