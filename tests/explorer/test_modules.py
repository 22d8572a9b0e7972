"""Modules joined to one script."""

import pytest

from posenc.explorer.modules import joined


def script(**files: str) -> str:
    return joined("main.js", {f"{name.replace('_', '/')}.js": files[name] for name in files}.get)


def test_each_module_stands_once_and_after_those_it_imports():
    text = script(
        main='import { a } from "./deep/a.js";\nimport { b } from "./b.js";\na(b);\n',
        deep_a='import {\n  b as c,\n} from "../b.js";\nexport async function a() { return c; }\n',
        b='export const b = "import";\nexport class d {}\n',
    )
    assert text.index("const $b") < text.index("const $deep_a") < text.index("const $main")
    assert text.count('const b = "import";') == 1
    assert "const { b: c } = $b;" in text
    assert "return { b, d };" in text
    assert "export " not in text


@pytest.mark.parametrize(
    "text", ['import x from "./x.js";', 'import "./x.js";', "export default 1;", "export { a };"]
)
def test_other_forms_are_an_error(text):
    with pytest.raises(ValueError, match="form"):
        script(main=f"{text}\n", x="export const a = 1;\n")
