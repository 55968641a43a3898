"""The report in a real browser, at the widths of a desktop and of a phone."""

import math
import shutil

import pytest

import bonas
from bonas.report import write_report
from bonas.search import random

BROWSER = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="needs Chromium and chromedriver"
    ),
]
webdriver = pytest.importorskip("selenium.webdriver")

WIDTHS = {"desktop": 1280, "phone": 390}
FIGURES = [
    "progress",
    "coordinates",
    "slices",
    "importance",
    "curves",
    "posterior",
    "calibration",
]
NASTY = "<script>alert(1)</script>"
SPACE = bonas.Space(
    depth=bonas.Int(1, 3),
    learning_rate=bonas.Float(1e-4, 1.0, log=True),
    activation=bonas.Choice("relu", "tanh", NASTY),
    width_2=bonas.Int(4, 64, log=True, when={"depth": (">=", 2)}),
)


def objective(config, trial):
    rate = math.log10(config["learning_rate"])
    if rate > -0.6:
        raise FloatingPointError(
            f"{NASTY} a_word_without_any_break_that_is_much_longer_than_a_phone_is_wide_"
            + "x" * 80
        )
    value = (rate + 2.0) ** 2 + config["depth"]
    for step in range(1, 6):
        trial.report(step, value + 1.0 / step)
    return value


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = (
        tmp_path_factory.mktemp("page") / "a study with a name that is rather long.db"
    )
    with bonas.Study(path, SPACE, search=random(SPACE)) as study:
        study.optimize(objective, trials=24, progress=False)
        assert {record.state for record in study.trials} == {"complete", "failed"}
        return write_report(study)


@pytest.fixture(scope="module")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield made
    made.quit()


@pytest.fixture(scope="module", params=WIDTHS)
def browser(request, driver, report):
    """Open the report at one width."""
    width = WIDTHS[request.param]
    metrics = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": request.param == "phone",
    }
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get_log("browser")  # discard the messages of earlier pages
    driver.get(report.as_uri())
    return driver


@pytest.mark.slow
def test_nothing_is_logged(browser):
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_is_visible(browser, name):
    shown = "return [...document.querySelectorAll(`#figure-${arguments[0]} svg:not(.key)`)].map(s => s.getBoundingClientRect())"  # noqa: E501
    boxes = [box for box in browser.execute_script(shown, name) if box["width"] > 0]
    assert boxes
    assert all(box["width"] >= 250 and box["height"] >= 80 for box in boxes)


def test_every_parameter_has_a_panel(browser):
    count = "return document.querySelectorAll('#figure-slices .grid > div').length"
    assert browser.execute_script(count) == SPACE.dim


def test_the_page_is_no_wider_than_the_window(browser):
    widths = browser.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert widths[0] <= widths[1]


def test_no_label_leaves_the_window(browser):
    """Labels of figures are not cut off at either side."""
    outside = """return [...document.querySelectorAll('figure svg text')].filter(t => {
        const box = t.getBoundingClientRect();
        return box.width > 0 && (box.left < 0 || box.right > window.innerWidth);
    }).map(t => t.textContent)"""
    assert browser.execute_script(outside) == []


def test_text_is_large_enough_to_read(browser):
    least = """return Math.min(...[...document.querySelectorAll('figure svg text')].map(
        t => t.getBoundingClientRect().height).filter(h => h > 0))"""
    assert browser.execute_script(least) >= 10


def test_a_click_on_a_column_sorts_by_it(browser):
    values = """return [...document.querySelectorAll('.sortable tbody tr')].map(row => row.cells[2])
        .map(cell => cell.dataset.value ?? cell.textContent).filter(text => text !== '').map(Number)"""  # noqa: E501
    click = "document.querySelectorAll('.sortable th button')[2].click()"
    browser.execute_script(click)
    up = browser.execute_script(values)
    browser.execute_script(click)
    down = browser.execute_script(values)
    assert len(up) > 5
    assert up == sorted(up)
    assert down == up[::-1]
    assert browser.get_log("browser") == []


def test_a_foreign_script_is_blocked_and_logged(driver, report, tmp_path):
    """The security policy blocks a script that is not escaped, and the browser logs it."""
    tampered = tmp_path / "tampered.html"
    tampered.write_text(
        report.read_text("utf-8").replace(
            "<main>", "<main><script>document.title = 'gone'</script>"
        ),
        "utf-8",
    )
    driver.get_log("browser")
    driver.get(tampered.as_uri())
    assert driver.title == "a study with a name that is rather long: a bonas study"
    assert any(
        "Content Security Policy" in entry["message"]
        for entry in driver.get_log("browser")
    )
