"""Modules joined to one script."""

import pytest

from posenc.explorer.modules import joined


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


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"main": 'import x from "./x.js";\n'}, "import x from"),
        ({"main": "export default 1;\n"}, "export default"),
        ({"main": "export let x = 1;\n"}, "export let"),
        ({"main": 'import { x } from "./x.js";\n', "x": "const x = 1;\n"}, "exports no such"),
        (
            {
                "main": 'import { x } from "./x.js";\n',
                "x": 'import { y } from "./main.js";\nexport const x = 1;\n',
            },
            "main.js → x.js → main.js is a circle",
        ),
    ],
)
def test_what_cannot_be_joined_is_refused(files, said):
    with pytest.raises(ValueError, match=said):
        script(**files)
