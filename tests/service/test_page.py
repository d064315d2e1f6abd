"""The page, in a real browser: a model is made and fed, and what is shown follows the stream."""

import shutil

import pytest

from streamgp.service import new_token
from tests.service.running import rows, serving, specification

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: see `make test-page`"),
]


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.faults = []
    opened.on("pageerror", lambda error: opened.faults.append(str(error)))
    opened.on(
        "console",
        lambda said: opened.faults.append(said.text) if "Content Security" in said.text else None,
    )
    yield opened
    assert not opened.faults
    opened.close()


def mean_of(page):
    """The line that the picture draws of the first channel."""
    return page.evaluate("document.getElementById('picture').data.find(t => t.name === 'level').y")


def wait_for_updates(page, count):
    page.wait_for_function(
        "n => [...document.querySelectorAll('.tile')].some(t => t.innerText === `${n}\\nupdates`)",
        arg=str(count),
        timeout=15000,
    )


def test_a_model_is_made_fed_and_watched(service, page):
    page.goto(str(service.base_url))
    api.expect(page.locator("#no-models")).to_be_visible()
    api.expect(page.locator("#connection")).to_have_text("live")
    page.get_by_role("button", name="New").click()
    page.fill("#new-name", "plant")
    tables = specification("x")
    del tables["name"]
    page.fill("#new-tables", "{")
    page.get_by_role("button", name="Make").click()
    api.expect(page.locator("#new-problem")).not_to_be_empty()
    page.fill("#new-tables", page.evaluate("t => JSON.stringify(t)", tables))
    page.get_by_role("button", name="Make").click()
    api.expect(page.locator("#name")).to_have_text("plant")
    api.expect(page.locator("#no-data")).to_be_visible()
    api.expect(page.locator("#course")).to_be_hidden()

    service.post("/v1/models/plant/observations", json=rows(20))
    wait_for_updates(page, 1)
    page.wait_for_selector("#picture .main-svg")
    before = mean_of(page)
    service.post("/v1/models/plant/observations", json=rows(20, begin=20))
    wait_for_updates(page, 2)
    page.wait_for_function(
        "b => document.getElementById('picture').data.find(t => t.name === 'level').y[0] !== b",
        arg=before[0],
    )
    assert len(mean_of(page)) > 100
    api.expect(page.locator("#components-card")).to_be_visible()
    points = "document.getElementById('picture').data.find(t => t.name === 'observed').x.length"
    page.wait_for_function(f"() => {points} === 40")


def test_a_model_that_is_not_there(service, page):
    page.goto(f"{service.base_url}#absent")
    api.expect(page.locator("#banner")).to_contain_text("a model that exists")
    api.expect(page.locator("#nothing")).to_be_visible()
    api.expect(page.locator("#model")).to_be_hidden()


def test_models_of_a_fleet(service, page):
    service.post("/v1/fleets", json=specification("pumps"))
    page.goto(str(service.base_url))
    api.expect(page.locator("#connection")).to_have_text("live")
    batch = [{"pump": key, **row} for key in ("north", "south") for row in rows()]
    service.post("/v1/fleets/pumps/observations?key=pump", json=batch)
    api.expect(page.locator("#models")).to_contain_text("pumps/south")
    page.get_by_role("button", name="pumps/south").click()
    api.expect(page.locator("#name")).to_have_text("pumps/south")
    wait_for_updates(page, 1)
    page.fill("input[name=hour]", "5.5")
    page.fill("input[name=level]", "0.7")
    page.get_by_role("button", name="Send").click()
    wait_for_updates(page, 2)


def test_observations_by_hand_and_by_file(service, page, tmp_path):
    service.post("/v1/models", json=specification("plant"))
    page.goto(f"{service.base_url}#plant")
    page.fill("input[name=hour]", "1.5")
    page.fill("input[name=level]", "0.7")
    page.get_by_role("button", name="Send").click()
    api.expect(page.locator("#sent")).to_contain_text("Learned 1 observations")
    page.fill("input[name=level]", "high")
    page.get_by_role("button", name="Send").click()
    api.expect(page.locator("#sent")).to_contain_text("expected")
    (tmp_path / "rows.csv").write_text("hour,level,alarm\n2,0.5,1\n3,0.1,\n4,-0.7,0\n")
    page.set_input_files("#file", str(tmp_path / "rows.csv"))
    page.get_by_role("button", name="Upload").click()
    api.expect(page.locator("#sent")).to_contain_text("Learned 5 observations")
    with page.expect_download() as download:
        page.locator("#download").click()
    assert download.value.suggested_filename == "plant.sgp"


def test_the_page_comes_back_after_a_restart(tmp_path, page):
    path = tmp_path / "models.db"
    with serving(path) as service:
        port = service.base_url.port
        service.post("/v1/models", json=specification("plant"))
        service.post("/v1/models/plant/observations", json=rows())
        page.goto(f"{service.base_url}#plant")
        wait_for_updates(page, 1)
    api.expect(page.locator("#connection")).to_have_text("reconnecting")
    with serving(path, port=port) as service:
        api.expect(page.locator("#connection")).to_have_text("live", timeout=20000)
        service.post("/v1/models/plant/observations", json=rows(begin=10))
        wait_for_updates(page, 2)


def test_a_token_is_asked_for_and_used(tmp_path, page):
    secret, token = new_token("all", ["read", "write", "admin"])
    with serving(tmp_path / "models.db", tokens=(token,)) as service:
        headers = {"Authorization": f"Bearer {secret}"}
        service.post("/v1/models", json=specification("plant"), headers=headers)
        page.goto(str(service.base_url))
        page.fill("#token", secret)
        page.locator("#token").press("Enter")
        api.expect(page.locator("#models button")).to_contain_text("plant", timeout=10000)
        api.expect(page.locator("#connection")).to_have_text("live", timeout=10000)


def test_keyboard_phone_and_dark(service, page):
    service.post("/v1/models", json=specification("plant"))
    service.post("/v1/models/plant/observations", json=rows())
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(str(service.base_url))
    page.wait_for_selector("#models button")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#models') !== null"):
            break
    page.keyboard.press("Enter")
    api.expect(page.locator("#name")).to_have_text("plant")
    wait_for_updates(page, 1)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    page.locator("#theme").click()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert ground != page.evaluate("getComputedStyle(document.body).backgroundColor")
