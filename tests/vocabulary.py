"""The words that the tree does not use, found in names, in file names and in prose."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

# Where a plain word stands for a term of the field, or says nothing: each with its right word.
NAMES = {
    "route": "backend",
    "routes": "backends",
    "meeting": "specification",
    "meetings": "specifications",
    "turning": "layout of the rotation",
    "wave": "sin and cos",
    "waves": "sin and cos",
    "untouchable": "may look",
    "util": "what it does",
    "utils": "what it does",
    "helper": "what it does",
    "helpers": "what it does",
    "manager": "what it does",
    "misc": "what it is",
}
PREFIXES = {"get": "a noun for a value", "compute": "a noun for a value"}
PROSE = {"route": "backend", "routes": "backends", "untouchable": "may look"}

WHOLE = (
    *("colour", "neighbour", "behaviour", "favour", "honour", "flavour", "labour", "centre"),
    *(r"metres?\b", "fibre", "catalogue", "licence", "defence", "grey", "artefact", "judgement"),
    *(r"spelt\b", r"learnt\b", "whilst", r"towards\b", r"programme\b", "analyse", "cancelled"),
    *("labell(?!edby)", "modelled", "modelling", "travelled", "signalled", "totalled"),
    r"fulfil\b",
)
VERBS = (
    *("normal", "random", "organ", "recogn", "general", "initial", "optim", "serial", "summar"),
    *("visual", "quant", "vector", "parallel", "token", "minim", "maxim", "custom", "special"),
    *("material", "synchron", "factor", "discret", "symmetr", "equal", "standard", "util"),
    *("penal", "character", "emphas", "real", "local", "final", "formal", "linear", "polar"),
    "regular",
)
BRITISH = re.compile(
    "|".join(WHOLE) + f"|(?:{'|'.join(VERBS)})is(?:e|ed|es|er|ers|ing|ation|ations)(?:\\b|_)",
    re.IGNORECASE,
)
STEMS = (
    *(re.match("[a-z]+", each)[0].removesuffix("s") for each in WHOLE),
    *(f"{each}is" for each in VERBS),
)
"""What is in every British word, for a quick look."""

SUSPECT = re.compile("|".join(rf"{each}(?:_|[A-Z])|{each.title()}[A-Z]" for each in PREFIXES))
"""What a file must hold, or one of NAMES, for its names and words to be read one by one."""

OTHERS = {"get_seq_length"}  # names that a base class of somebody else asks for

Found = tuple[int, str]  # a line and what is wrong there


def words(name: str) -> list[str]:
    """The words of an identifier or a file name, however they are joined.

    >>> words("RotaryLayout_ofHeads.py")
    ['rotary', 'layout', 'of', 'heads', 'py']
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [word.lower() for word in re.split(r"[^A-Za-z]+", parted) if word]


def faults_of_name(name: str) -> list[str]:
    """What is wrong with a name that we gave; that of a test is a sentence, and read as prose."""
    inside = words(name)
    forbidden = PROSE if inside[:1] == ["test"] else NAMES
    wrong = [f"{name}: say {forbidden[word]}" for word in inside if word in forbidden]
    if inside[1:] and inside[0] in PREFIXES and name not in OTHERS:
        wrong.append(f"{name}: say {PREFIXES[inside[0]]}")
    return wrong + [f"{name}: is British" for _ in BRITISH.findall(name)]


def faults_of_prose(text: str) -> Iterator[Found]:
    """What is wrong in plain text, with its lines."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, f"{word}: is British") for word in BRITISH.findall(line))
        plain = re.sub(r"\w*[_/.`]\w[\w./]*|https?:\S+", " ", line)  # names and addresses
        for word in words(plain):
            if word in PROSE:
                yield number, f"{word}: say {PROSE[word]}"


# What a file says.


def given_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that Python source gives: what it only uses may be named by others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def in_python(source: str) -> Iterator[Found]:
    for number, name in given_names(ast.parse(source)):
        yield from ((number, fault) for fault in faults_of_name(name))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for line, fault in faults_of_prose(token.string):
                yield token.start[0] + line - 1, fault


COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*|<!--.*?-->", re.DOTALL)
STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`")


def in_code(source: str) -> Iterator[Found]:
    """C, JavaScript and styles: names by their look, the rest as prose."""
    yield from faults_of_prose(source)
    bare = STRINGS.sub(" ", COMMENTS.sub(lambda found: "\n" * found[0].count("\n"), source))
    for number, line in enumerate(bare.splitlines(), 1):
        for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", line):
            yield from ((number, f"{name}: say {NAMES[w]}") for w in words(name) if w in NAMES)


def suspected(source: str) -> bool:
    """Whether a close look is worth its time; a search of the whole text takes a tenth of it."""
    low = source.lower()
    return any(stem in low for stem in (*NAMES, *STEMS)) or SUSPECT.search(source) is not None


def faults(root: Path, files: Iterable[Path]) -> Iterator[str]:
    """Every forbidden word in these files and their names, with its place."""
    for path in files:
        name = path.relative_to(root)
        for part in name.parts:
            yield from (f"{name}: {fault}" for fault in faults_of_name(part))
        read = {".py": in_python, ".pyi": in_python, ".c": in_code, ".h": in_code, ".js": in_code}
        try:
            source = path.read_text()
        except UnicodeDecodeError:  # a picture
            continue
        if not suspected(source):
            continue
        for line, fault in sorted(set(read.get(path.suffix, faults_of_prose)(source))):
            yield f"{name}:{line}: {fault}"
