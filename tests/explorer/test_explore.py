"""``posenc explore`` and the notebook's call."""

import subprocess
import sys
from html import unescape

from posenc.explorer import page, show


def test_it_writes_the_page(run, tmp_path):
    path = tmp_path / "page.html"
    ran = run("explore", "-o", path)
    assert (ran.status, ran.err) == (0, "")
    assert str(path) in ran.out
    assert path.read_text(encoding="utf-8") == page()


def test_bad_requests_are_refused_in_one_line(refused, tmp_path):
    assert "must end in .html" in refused("explore", "-o", tmp_path / "page.png")
    assert "there is no folder" in refused("explore", "-o", tmp_path / "none" / "page.html")
    assert "0 … 65535" in refused("explore", "--port", 70000)


def test_the_browser_is_opened_at_the_address_served(run, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    ran = run("explore")
    assert ran.status == 0
    assert opened == [ran.out.split()[4]]
    assert opened[0].startswith("http://127.0.0.1:")
    assert run("explore", "--no-browser").status == 0
    assert len(opened) == 1


def test_a_notebook_shows_the_page_in_a_closed_frame():
    html = show(700)._repr_html_()
    assert 'height="700"' in html
    assert 'sandbox="allow-scripts allow-downloads"' in html
    assert unescape(html.split('srcdoc="')[1].rsplit('"', 1)[0]) == page()


def test_showing_needs_neither_ipython_nor_torch():
    code = (
        "import sys; from posenc.explorer import show; show()._repr_html_()\n"
        "print([m for m in ('IPython', 'torch', 'matplotlib') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
