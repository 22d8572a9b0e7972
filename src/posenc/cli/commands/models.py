"""The commands about models, their files and their code: what each takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import File, Flag, Name, Output, Python, SomeWhole, Whole, by_place, named


@dataclass(frozen=True)
class Inspect(options.Command):
    """Prints, for each part and layer, the encoding in words and the expression that builds it. For
    rotary encodings: frequencies, rotated channels, pairing, factors, wavelengths, and the errors
    of implementations with floating positions. A model.safetensors beside the file confirms widths.
    """

    config: Annotated[Path, by_place, named("FILE"), Doc("A config.json, or its folder.")]
    other: Annotated[Optional[Path], by_place, named("OTHER"), Doc("One to compare with.")] = None
    length: Annotated[SomeWhole, Doc("Target length (default: its longest).")] = None
    dtype: Annotated[options.Narrow, Doc("Of other implementations' positions.")] = "bfloat16"
    figure: Annotated[File, Doc("Draw wavelengths, or a bias.")] = None
    format: options.TextOrJson = "text"


@dataclass(frozen=True)
class Convert(options.Command):
    """The rows of query and key projections, their biases and norms change places. No number is
    changed, and converting back gives the same bits. Sharded checkpoints go from folder to folder:
    the shards, their index and config.json. The metadata of files, and in a folder config.json, say
    posenc_pairing.
    """

    weights: Annotated[Path, by_place, named("WEIGHTS"), Doc("A file, an index, or a folder.")]
    output: Annotated[Path, named("OUT", "-o"), Doc("The new file or folder.")]
    to: Annotated[
        Optional[Literal["half", "interleaved"]],
        named("half|interleaved"),
        Doc("half pairs i with i + width/2, interleaved 2i with 2i + 1 (default: the other)."),
    ] = None
    config: Annotated[File, Doc("The config.json (default: that beside the weights).")] = None


@dataclass(frozen=True)
class Export(options.Command):
    """For llama.cpp (GGUF metadata keys, and tensors of factors), vLLM (--hf-overrides) and
    Megatron-LM (its command line); or frequencies and exact tables as arrays (.npz, .safetensors),
    or the rotation as an ONNX program. What the other program cannot express is refused.

    An ONNX program takes 2 query heads and 1 key head; in Python onnx_program(heads=...) makes
    others.
    """

    config: Annotated[Path, by_place, named("FILE"), Doc("A config.json, or its folder.")]
    to: Annotated[
        Literal["gguf-keys", "vllm-overrides", "megatron", "npz", "safetensors", "onnx"],
        Doc("In whose words."),
    ]
    output: Annotated[Output, Doc("Where to write; npz, safetensors and onnx need it.")] = None
    part: Annotated[Name, Doc("Which part of a model of several, as text.")] = None
    longest: Annotated[SomeWhole, Doc("Positions in tables; onnx needs it.")] = None
    length: Annotated[SomeWhole, Doc("For frequencies that depend on it.")] = None
    architecture: Annotated[Name, Doc("What llama.cpp calls it, if not by the model type.")] = None
    operator: Annotated[Literal["basic", "RotaryEmbedding"], Doc("For ONNX (opset 23).")] = "basic"


@dataclass(frozen=True)
class Check(options.Command):
    """Checks a class, a function that builds it, or the thing itself: MODULE:FACTORY, where MODULE
    may be a .py file. model:PATH takes a config.json or the folder of a transformers model.

    What is not said is found out: the kind, the order of axes, how to call it. --call is Python
    with subject and any of x, q, k, p (positions), offset, q_len, k_len, scores, length, dim.

    Exit status: 0 nothing wrong, 1 something wrong (or lossy, with --strict), 2 could not check,
    or nothing essential could be asked.
    """

    target: Annotated[str, by_place, named("MODULE:FACTORY"), Doc("What to check.")]
    arguments: Annotated[str, named("JSON"), Doc("Keyword arguments of the factory.")] = "{}"
    kind: Annotated[
        Optional[Literal["added", "rotary", "bias", "table", "tokens", "pairs"]],
        named("added|rotary|bias|table|tokens|pairs", "--as"),
        Doc("What it is."),
    ] = None
    layout: Annotated[Name, Doc("Order of axes: bsd, sbd, bhsd, bshd, sbhd, ….")] = None
    call: Annotated[Python, Doc('How to call it, as "subject(q, k, position_ids=p)".')] = None
    dim: Annotated[SomeWhole, Doc("Its width.")] = None
    length: Annotated[SomeWhole, Doc("Where precision counts (default: its own, or 8192).")] = None
    strict: Annotated[Flag, Doc("What is lossy counts as what is wrong.")] = False
    ignore: Annotated[options.Words, named("F"), Doc("Faults that do not count.")] = None
    only: Annotated[options.Words, named("NAME"), Doc("Questions to ask alone.")] = None
    seq_first: Annotated[Flag, Doc("It takes [seq, batch, dim].")] = False
    format: Annotated[Literal["text", "json", "sarif"], Doc("How to print.")] = "text"
    figure: Annotated[File, Doc("Draw errors: .png, .svg or .pdf.")] = None
    dpi: options.Dpi = None


@dataclass(frozen=True)
class Parity(options.Command):
    """A trainer and a server may compute one formula in different orders and dtypes. --config or
    --encoding says which; --layout and --call are of own code, as in check.

    A side is a profile: transformers, vllm, vllm-native, sglang, megatron, torchtitan, torchtune,
    flash-attention, llama.cpp, mlx, exact. Or it is your own code, MODULE:NAME or FILE.py:NAME, or
    model:PATH, what transformers builds of a config.json.

    --write takes .safetensors or .pt. Tables: cos_sin_cache of vLLM and SGLang, cos_sin of
    transformers, complex of torchtitan and Llama 4, halves of flash-attention, pairs of torchtune.

    Exit status: 0 equal bits, 1 they differ, 2 could not be compared.
    """

    a: Annotated[str, by_place, named("A"), Doc("One side.")]
    b: Annotated[str, by_place, named("B"), Doc("The other.")]
    config: Annotated[Optional[Path], named("CONFIG.json"), Doc("What both compute.")] = None
    layer_type: Annotated[Name, Doc("Of which layers, as full_attention.")] = None
    encoding: Annotated[Name, Doc('What both compute, as "Rotary(128)".')] = None
    dtype: Annotated[options.Narrow, Doc("The dtype of queries and keys.")] = "bfloat16"
    length: Annotated[SomeWhole, Doc("Number of positions (default: 8192).")] = None
    weights: Annotated[File, Doc("With tensors q, k or q_proj.weight, k_proj.weight.")] = None
    layer: Annotated[Whole, Doc("Of which layer the projections are.")] = 0
    arguments: Annotated[str, named("JSON"), Doc("Keyword arguments of own code.")] = "{}"
    layout: Annotated[Name, Doc("Order of axes, as bhsd.")] = None
    call: Annotated[Python, Doc("How to call own code.")] = None
    write: Annotated[File, Doc("Write the exact table, for both sides to load.")] = None
    table: Annotated[
        Literal["cos_sin_cache", "cos_sin", "complex", "halves", "pairs"], Doc("Its form.")
    ] = "cos_sin_cache"
    seed: options.Seed = 0
    format: options.TextOrJson = "text"


@dataclass(frozen=True)
class Lab(options.Command):
    """plan GRID prints how many runs a grid has, and how long they take on this machine.

    run GRID makes the runs that are left, and prints a summary. You may stop it and run it again.

    status GRID prints which runs are made, running, failed and left.

    report GRID writes one HTML page, with Markdown and CSV beside it.

    show RUN prints one run, by its id or the start of its id.

    clean removes the leftovers of killed and failed runs, and keeps results.

    GRID is a TOML file, or one that comes with posenc: quick, standard or extension.
    """

    action: Annotated[
        Literal["plan", "run", "status", "report", "show", "clean"], by_place, Doc("What to do.")
    ]
    target: Annotated[Optional[str], by_place, named("GRID"), Doc("A grid, or a run.")] = None
    folder: Annotated[Path, named("FOLDER"), Doc("Results, or an export.")] = Path("lab-results")
    encoding: Annotated[
        options.Words, named("EXPRESSION"), Doc('More encodings, as "mine.py:MyBias({heads})".')
    ] = None
    workers: Annotated[Whole, Doc("Runs at a time, a process each.")] = 1
    engine: Annotated[Literal["local", "ray"], Doc("Who runs: this machine, or Ray.")] = "local"
    output: Annotated[Output, Doc("The report, .html (default: GRID.html).")] = None
    export: Annotated[File, Doc("Write results too: .json, or one table .csv, .parquet.")] = None
    query: Annotated[Optional[str], named("SQL"), Doc("For show: SQL over the table runs.")] = None
