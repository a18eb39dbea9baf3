"""A training step of ours and of PyTorch's, side by side: the same model, weights, batch and loss, one after the other in one run.

    make && make build/test/side_by_side
    python3 test/side_by_side.py > table.md          needs torch, numpy and safetensors; on a machine with nothing else to do
    python3 test/side_by_side.py --quick             the same with tiny models, uncompiled, in seconds: do the losses agree?
    python3 test/side_by_side.py --device cuda       both on the GPU, at the papers' size; fp32 on both sides, TF32 off

Each variant is a process of its own that takes a step when it is asked to: ours (test/side_by_side.cpp), which draws the weights and
the batch and writes them to a safetensors file, and PyTorch's (test/side_by_side_torch.py), which read them from there: eager and
compiled, the Transformers also with scaled_dot_product_attention (sdpa). A round is one step of each, in turns; a step is forward,
backward, clipping and AdamW. What is printed are medians over the rounds, the most memory that each process had, compiling included,
and as ratio the median over the rounds of PyTorch's time over ours, for the variant where it is smallest. Status 1 where one of the
first three losses, before any update and after one and two, differs by more than 1e-5.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

SAME, COMPARED = 1e-5, 3  # losses, of the first steps
WARM_UP = 2  # steps before the rounds: memory, threads, compiling
TORCH_HALF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "side_by_side_torch.py")
RATE = 5e-4  # of learning
PAUSE = 0.02  # seconds between two steps: threads that have no more work wait for a while before they sleep

VARIANTS = ["eager", "compiled", "sdpa", "sdpa compiled"]  # of PyTorch

# Rows of the table: what test/side_by_side.cpp is asked for.
GPT2 = "--model transformer --layers 6 --norm affine --gelu tanh"
ROWS = {
    "causal_rn-16": "--model causal_rn --length 16 --batch 64",
    "causal_rn-128": "--model causal_rn --length 128 --batch 8",
    "linear_causal_rn-16": "--model linear_causal_rn --length 16 --batch 64",
    "linear_causal_rn-128": "--model linear_causal_rn --length 128 --batch 32",
    "transformer-16": "--model transformer --length 16 --batch 64",
    "transformer-128": "--model transformer --length 128 --batch 32",
    "linear_transformer-16": "--model linear_transformer --length 16 --batch 64",
    "linear_transformer-128": "--model linear_transformer --length 128 --batch 32",
    "gpt2-6x384": GPT2 + " --width 384 --heads 6 --length 127 --batch 4",
}
PAPERS = "--length 128 --batch 320 --width 192 --layers 12"  # on a GPU
ON_GPU = {
    "transformer": "--model transformer " + PAPERS,
    "linear_transformer": "--model linear_transformer " + PAPERS,
    "linear_causal_rn": "--model linear_causal_rn " + PAPERS,
    "causal_rn": "--model causal_rn " + PAPERS + " --batch 8",  # all pairs of all channels stand in PyTorch's memory
}
TINY = "--width 24 --layers 2 --length 6 --batch 3"  # the later of two equal options counts
QUICK = {
    "causal_rn": "--model causal_rn " + TINY,
    "linear_causal_rn": "--model linear_causal_rn " + TINY,
    "transformer": "--model transformer " + TINY,
    "linear_transformer": "--model linear_transformer " + TINY,
    "gpt2": GPT2 + " --heads 3 " + TINY,
}


class Stepper:
    """A process that takes a step when it is asked to. What it writes to standard error is shown."""

    def __init__(self, name, words):
        # Settings of a BLAS that stand in the environment are for other programs, and would change one side only.
        environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        self.name, self.losses, self.seconds = name, [], []
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with status {self.process.wait()}")
        return line.strip()

    def ask(self):
        self.start = time.perf_counter()
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self):
        self.losses.append(float(self.answer()))
        self.seconds.append(time.perf_counter() - self.start)
        time.sleep(PAUSE)

    def cell(self):
        """The median time of a step, and the most memory of the process so far, as Linux reports it."""
        with open(f"/proc/{self.process.pid}/status") as file:
            memory = int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1)) * 1024 / 1e6
        return f"{statistics.median(self.seconds[WARM_UP:]):.3g} s, {memory:,.0f} MB"

    def end(self):
        self.process.kill()
        self.process.wait()


def measure(name, options, a, folder, steppers):
    """Prints a row, and where it is the first the table's head; returns whether the losses are the same."""
    path, rate, threads = f"{folder}/{name}.safetensors", str(RATE), str(a.threads)
    ours = Stepper("ours", [f"{a.build}/test/side_by_side", path, *options.split(), "--lr", rate, "--threads", threads,
                            "--device", a.device])
    steppers.append(ours)
    ours.answer()  # the file is there
    for variant in a.variants:
        if "sdpa" not in variant or "--model transformer" in options:
            steppers.append(Stepper(variant, [sys.executable, TORCH_HALF, path, variant, threads, rate, a.device]))
    greetings = [s.answer() for s in steppers[1:]]
    if name == next(iter(a.rows)):
        print(f"{greetings[0]}, {threads} threads, {a.device}, {a.rounds} rounds\n")
        print("| a training step | ours | " + " | ".join(a.variants) + " | ratio | loss | differs by |")
        print("| --- " * (len(a.variants) + 5) + "|")
    for stepper in steppers:  # in the first step all compile at once
        stepper.ask()
    for stepper in steppers:
        stepper.finish()
    for _ in range(WARM_UP - 1 + a.rounds):
        for stepper in steppers:
            stepper.ask()
            stepper.finish()
    cells = {s.name: s.cell() for s in steppers}
    ratio = min(statistics.median(t / o for t, o in zip(s.seconds[WARM_UP:], ours.seconds[WARM_UP:])) for s in steppers[1:])
    difference = max(abs(x - y) for s in steppers for x, y in zip(s.losses[:COMPARED], ours.losses))
    print(f"| {name} | " + " | ".join(cells.get(v, "") for v in ["ours", *a.variants]) +
          f" | {ratio:.2f} | {ours.losses[0]:.6f} | {difference:.1e} |", flush=True)
    if difference > SAME:
        losses = "; ".join(f"{s.name} {s.losses[:COMPARED]}" for s in steppers)
        print(f"{name}: the losses are not the same to {SAME}: {losses}", file=sys.stderr)
    return difference <= SAME


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny models, two rounds, nothing compiled")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of both sides; default cpu")
    parser.add_argument("--rounds", type=int, default=9, help="steps of each that count; default %(default)s")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each side; default all, here %(default)s")
    parser.add_argument("--build", default="build", metavar="FOLDER", help="where make builds; default %(default)s")
    a = parser.parse_args()
    a.rows = QUICK if a.quick else ON_GPU if a.device == "cuda" else ROWS
    a.variants = [v for v in VARIANTS if not a.quick or "compiled" not in v]
    if a.quick:
        a.rounds = 2
    same = True
    with tempfile.TemporaryDirectory() as folder:
        for name, options in a.rows.items():
            steppers = []
            try:
                same = measure(name, options, a, folder, steppers) and same
            finally:
                for stepper in steppers:
                    stepper.end()
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
