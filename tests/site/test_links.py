"""Every link within the site leads somewhere, and every image has words."""

import pytest
from tests.site.links import astray, mute, pages

PAGE = '<h1 id="top">A</h1><a href="{link}">there</a><img src="b.png" alt="{words}">'


@pytest.fixture
def small(tmp_path):
    """A site of two pages and a picture, and a file beside it that will not be uploaded."""
    (tmp_path / "outside.html").touch()
    site = tmp_path / "site"
    (site / "in").mkdir(parents=True)
    (site / "b.png").touch()
    back = '<p id="été"><a href="../a.html#top">back</a></p>'
    (site / "in/other.html").write_text(back, encoding="utf-8")

    def made(link: str, words: str = "a picture"):
        (site / "a.html").write_text(PAGE.format(link=link, words=words), encoding="utf-8")
        return site

    return made


@pytest.mark.parametrize(
    "link",
    [
        *("#top", "in/other.html", "in/other.html?highlight=x#%C3%A9t%C3%A9", "b.png", ""),
        *("https://example.org/nowhere.html#x", "//example.org/a", "mailto:a@example.org"),
    ],
)
def test_what_leads_somewhere_or_elsewhere_is_left_alone(small, link):
    assert list(astray(small(link))) == []


@pytest.mark.parametrize(
    "link", ["#bottom", "in/none.html", "in/other.html#top", "in", "../outside.html", "c.png"]
)
def test_what_leads_nowhere_is_found(small, link):
    assert list(astray(small(link))) == [f"a.html: {link}"]


def test_images_without_words_are_found(small):
    assert list(mute(small("#top"))) == []
    for words in ("", " ", "b.png", "pictures/b.png"):
        assert list(mute(small("#top", words))) == ["a.html: b.png"]


@pytest.mark.slow("reads the site that `make docs` has built")
def test_every_link_of_the_site_leads_somewhere(site):
    assert list(astray(site)) == []


@pytest.mark.slow("reads the site that `make docs` has built")
def test_every_image_of_the_site_has_words(site):
    images = [image for page in pages(site).values() for image in page.images]
    assert len(images) > 20, "the gallery alone shows more"
    assert list(mute(site)) == []
