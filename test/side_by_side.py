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
import importlib.util
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
    "causal_rn": "--model causal_rn " + PAPERS + " --batch 8",  # all pairs of all channels stand in PyTorch's memory
    "linear_causal_rn": "--model linear_causal_rn " + PAPERS,
    "transformer": "--model transformer " + PAPERS,
    "linear_transformer": "--model linear_transformer " + PAPERS,
}
TINY = "--width 24 --layers 2 --length 6 --batch 3"  # the later of two equal options counts
QUICK = {
    "causal_rn": "--model causal_rn " + TINY,
    "linear_causal_rn": "--model linear_causal_rn " + TINY,
    "transformer": "--model transformer " + TINY,
    "linear_transformer": "--model linear_transformer " + TINY,
    "gpt2": GPT2 + " --heads 3 " + TINY,
}


class Ended(Exception):
    """A process ended where an answer was due; its last words."""


class Stepper:
    """A process that takes a step when it is asked to."""

    def __init__(self, name, words, device):
        # Settings of a BLAS that stand in the environment are for other programs, and would change one side only.
        environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        self.name, self.device, self.losses, self.seconds = name, device, [], []
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=environment)
        try:
            self.greeting, self.memory_before = self.answer(), self.memory()
        except Ended:
            self.end()
            raise

    def answer(self):
        line = self.process.stdout.readline()
        if line:
            return line.strip()
        self.process.wait()
        self.errors.seek(0)
        words = [line.strip() for line in self.errors if re.match(r"\S*(Error|Exception|error|side_by_side)\S*:", line)]
        raise Ended(f"{self.name}: {words[0] if words else 'ended'} (status {self.process.returncode})")

    def step(self):
        start = time.perf_counter()
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # answer() knows why
        self.losses.append(float(self.answer()))
        self.seconds.append(time.perf_counter() - start)
        time.sleep(PAUSE)

    def memory(self):
        """Of the process, the most so far, in MB, as Linux reports it; None on a GPU, which has memory of its own."""
        if self.device != "cpu":
            return None
        try:
            with open(f"/proc/{self.process.pid}/status") as file:
                return int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1)) * 1024 / 1e6
        except (OSError, AttributeError):
            return None

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended by itself
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def fits(variant, options):
    return "sdpa" not in variant or "--model transformer" in options


def start(options, arguments, path):
    """Ours, which writes the file, and then PyTorch's variants."""
    rate, threads, device = str(RATE), str(arguments.threads), arguments.device
    ours = [f"{arguments.build}/test/side_by_side", path, *options.split(), "--lr", rate, "--threads", threads, "--device", device]
    steppers = [Stepper("ours", ours, device)]
    try:
        for variant in arguments.variants:
            if fits(variant, options):
                steppers.append(Stepper(variant, [sys.executable, TORCH_HALF, path, variant, threads, rate, device], device))
    except Ended:
        for stepper in steppers:
            stepper.end()
        raise
    return steppers


def take_turns(steppers, rounds):
    """What cannot be compiled here leaves the list, with a line that says why."""
    for _ in range(WARM_UP + rounds):
        for stepper in list(steppers):
            try:
                stepper.step()
            except Ended as error:
                if "compiled" not in stepper.name or stepper.losses:
                    raise
                print(f"skip {error}", file=sys.stderr)
                stepper.end()
                steppers.remove(stepper)


def table_row(name, steppers, variants):
    """The row, and the largest difference between the losses."""
    ours, *others = steppers
    cells = {}
    for stepper in steppers:
        memory = stepper.memory()
        cells[stepper.name] = f"{statistics.median(stepper.seconds[WARM_UP:]):.3g} s" + (f", {memory:,.0f} MB" if memory else "")
    ratios = [statistics.median(t / o for t, o in zip(s.seconds[WARM_UP:], ours.seconds[WARM_UP:])) for s in others]
    differences = [abs(a - b) for s in others for a, b in zip(s.losses[:COMPARED], ours.losses)]
    words = [name, cells["ours"], *(cells.get(v, "") for v in variants), f"{min(ratios):.2f}" if ratios else "",
             f"{ours.losses[0]:.6f}", f"{max(differences):.1e}" if differences else ""]
    return "| " + " | ".join(words) + " |", max(differences, default=0)


def measure(name, options, arguments, folder, first):
    """Prints a row, before the first one the table's head; whether the losses are the same."""
    steppers = start(options, arguments, f"{folder}/{name}.safetensors")
    try:
        if first:
            before = steppers[1].memory_before
            where = f"{arguments.threads} threads" if arguments.device == "cpu" else arguments.device
            print(f"{steppers[1].greeting}, {where}, {arguments.rounds} rounds"
                  + (f"; PyTorch has {before:,.0f} MB before its first step" if before else "") + "\n")
            print("| a training step | ours | " + " | ".join(arguments.variants) + " | ratio | loss | differs by |")
            print("| --- " * (len(arguments.variants) + 5) + "|")
        take_turns(steppers, arguments.rounds)
        row, difference = table_row(name, steppers, arguments.variants)
    finally:
        for stepper in steppers:
            stepper.end()
    print(row, flush=True)
    if difference <= SAME:
        return True
    losses = "; ".join(f"{s.name} {s.losses[:COMPARED]}" for s in steppers)
    print(f"{name}: the losses are not the same to {SAME}: {losses}", file=sys.stderr)
    return False


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--quick", action="store_true", help="tiny models, two rounds, nothing compiled")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of both sides; default cpu")
    parser.add_argument("--rounds", type=int, help="steps of each that count; default 9")
    parser.add_argument("--threads", type=int, default=cores, help="of each side; default all cores, here %(default)s")
    parser.add_argument("--build", default="build", metavar="FOLDER", help="where make builds; default %(default)s")
    a = parser.parse_args()
    a.rows = QUICK if a.quick else ON_GPU if a.device == "cuda" else ROWS
    a.rounds = (2 if a.quick else 9) if a.rounds is None else a.rounds
    a.variants = [v for v in VARIANTS if not a.quick or "compiled" not in v]
    for option, value in ("--rounds", a.rounds), ("--threads", a.threads):
        if value < 1:
            parser.error(f"{option} {value}: expected 1 or more")
    return a


def main():
    arguments = parse()
    for module in "torch", "numpy", "safetensors":
        if not importlib.util.find_spec(module):
            sys.exit(f"side_by_side.py: needs {module}, which this Python ({sys.executable}) does not have")
    if not os.path.exists(f"{arguments.build}/test/side_by_side"):
        sys.exit(f"side_by_side.py: {arguments.build}/test/side_by_side is not there: make build/test/side_by_side")
    with tempfile.TemporaryDirectory() as folder:
        try:
            same = [measure(name, options, arguments, folder, name == next(iter(arguments.rows)))
                    for name, options in arguments.rows.items()]
        except Ended as error:
            sys.exit(f"side_by_side.py: {error}")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
