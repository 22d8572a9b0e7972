"""Modules joined to one script: what they may say, and that nothing else goes through."""

import re

import pytest

from posenc.explorer.javascript import tokens
from posenc.explorer.modules import exports, joined


def script(**files: str) -> str:
    named = {f"{name.replace('_', '/')}.js": text for name, text in files.items()}
    return joined("main.js", named.__getitem__)


def test_each_module_stands_once_and_after_those_it_imports():
    text = script(
        main='import { a } from "./a.js";\nimport { b } from "./b.js";\na(b);\n',
        a='import { b as c } from "./b.js";\nexport function a() { return c; }\n',
        b="export const b = 1;\n",
    )
    assert text.index("const $b") < text.index("const $a") < text.index("const $main")
    assert text.count("const b = 1;") == 1
    assert "const { b: c } = $b;" in text
    assert "return { a };" in text


def test_paths_are_relative_to_the_module():
    text = script(
        main='import { x } from "./deep/x.js";\nx;\n',
        deep_x='import {\n  y,\n} from "../y.js";\nexport class x extends y {}\n',
        y="export async function y() {}\n",
    )
    assert "const { y } = $y;" in text
    assert "const { x } = $deep_x;" in text


def test_imports_may_run_over_lines_with_comments_and_other_names():
    text = script(
        main="""// first
import {
  one, // the first
  two as deux, /* the second */
} from './x.js'; import { three } from "./x.js";
one(deux, three);
""",
        x="export const one = 1;\nexport function* two() {}\nexport class three {}\n",
    )
    assert "const { one, two: deux } = $x; const { three } = $x;" in text
    assert "import" not in text


FOOLING = """const a = "export default 1; import x from 'x'";
const b = `import { ${"export const c = `" + `} from`} "./nowhere.js"`;
// import y from "y";
/*
export * from "z";
*/
const c = /import("x")|["'`]/.test(a) / 2;
const d = { import: 1, export: 2 };
const e = d.import + d?.export;
const f = (x) => x / 2 / 3;
export const done = [a, b, c, d, e, f];
"""


def test_words_that_are_no_statements_fool_nobody():
    text = script(main='import { done } from "./x.js";\ndone;\n', x=FOOLING)
    assert FOOLING.replace("export const done", "const done") in text
    assert exports(FOOLING) == ["done"]


def test_the_joined_script_runs_and_does_what_the_modules_do(browser):
    text = script(
        main='import { done as found } from "./x.js";\nglobalThis.found = found.map(String);\n',
        x=FOOLING,
    )
    page = browser.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.add_script_tag(content=text)
    found = page.evaluate("() => globalThis.found")
    page.close()
    assert complaints == []
    assert found[1] == 'import { export const c = `} from "./nowhere.js"'
    assert found[4] == "3"


REFUSED = [
    'import x from "./x.js";',
    'import x, { a } from "./x.js";',
    'import * as x from "./x.js";',
    'import "./x.js";',
    'import { a } from "x";',
    'import { a } from "/x.js";',
    'import { a } from "https://example.org/x.js";',
    'import { a } from "./x.js" with { type: "json" };',
    'import { "a" as b } from "./x.js";',
    'import { a } from "./x.js"',
    'import { a b } from "./x.js";',
    'import { a } "./x.js";',
    'const b = 1;\nimport { a } from "./x.js";',
    'const b = import("./x.js");',
    'function f() { return import("./x.js"); }',
    "const here = import.meta.url;",
    "export default 1;",
    "export default function f() {}",
    "export { a };",
    'export { a } from "./x.js";',
    'export * from "./x.js";',
    'export * as x from "./x.js";',
    "export let a = 1;",
    "export var a = 1;",
    "export const a = 1, b = 2;",
    "export const { a, b } = c;",
    "export const [a] = c;",
    "export const a;",
    "export async () => 1;",
    "export function () {}",
    "export class extends Object {}",
    "{ export const a = 1; }",
    "const a = await fetch(b);",
]


@pytest.mark.parametrize("text", REFUSED)
def test_every_other_form_is_refused(text):
    with pytest.raises(ValueError, match=r"main\.js has .*; write import \{ … \} from") as caught:
        script(main=f"{text}\n", x="export const a = 1;\n")
    told = re.search(r"main\.js has (.+); write", str(caught.value))
    assert told[1].strip("'\"")[:6] in text.replace('"', '\\"') + text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"main": 'import { x } from "./x.js";\n', "x": "const x = 1;\n"},
            "imports x from x.js, which exports no such",
        ),
        (
            {
                "main": 'import { x } from "./x.js";\n',
                "x": 'import { y } from "./main.js";\nexport const x = 1;\n',
            },
            "main.js → x.js → main.js is a circle",
        ),
        ({"main": "const a = 'never ends;\n"}, "main.js: line 1 cannot be read"),
        ({"main": "const a = `never ends;\n"}, "line 1 begins a template that does not end"),
        ({"main": "1;\n/* never ends\n"}, "line 2 begins a comment that does not end"),
        ({"main": "const a = (1];\n"}, "line 1 closes what is not open"),
        ({"main": "const a = {\n"}, "line 1 opens what is never closed"),
        ({"main": "const a = {} / 2;\n"}, "a slash after '}'"),
        ({"main": "let a = 1;\na++ / 2;\n"}, "line 2 has a slash after '+'"),
    ],
)
def test_what_cannot_be_joined_is_refused(files, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        script(**files)


def test_two_files_that_would_share_a_name_are_refused():
    files = {
        "main.js": 'import { a } from "./a-b.js";\nimport { b } from "./a_b.js";\n',
        "a-b.js": "export const a = 1;\n",
        "a_b.js": "export const b = 1;\n",
    }
    with pytest.raises(ValueError, match=r"a_b\.js and a-b\.js would bear one name"):
        joined("main.js", files.__getitem__)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a / b / c", ["a", "/", "b", "/", "c"]),
        ("x = /[/]\\/'/g;", ["x", "=", "/[/]\\/'/g", ";"]),
        ("return /a/", ["return", "/a/"]),
        ("f(1) / 2", ["f", "(", "1", ")", "/", "2"]),
        ("`a${`b${c}`}}` + d", ["`a${`b${c}`}}`", "+", "d"]),
        ("`${{ a: '}' }}` / 2", ["`${{ a: '}' }}`", "/", "2"]),
        (r'"\"" // "' + "\n'x'", [r'"\""', "'x'"]),
        ("0x1f + 1e-9 + .5 + 10n", ["0x1f", "+", "1e-9", "+", ".5", "+", "10n"]),
        ("a?.b ? .5 : c", ["a", "?.", "b", "?", ".5", ":", "c"]),
        ("#x in naïve_$", ["#x", "in", "naïve_$"]),
    ],
)
def test_tokens(text, wanted):
    assert [token.text for token in tokens(text)] == wanted
