"""What a person sees and does, as short words on top of Selenium and Chromium's own protocol."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

PATIENCE_SECONDS = 20.0

# For each piece of text: is its contrast with what lies behind it enough (WCAG 2.2, 1.4.3)?
CONTRAST = """
const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgb = (colour) => {                    // any CSS colour, color-mix included, by letting the browser paint it
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const ground = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(rgb(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const light = (c) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let seen = 0;
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
  if (element.closest('svg, .unseen, script, noscript')) continue;
  const back = ground(element), front = over(rgb(getComputedStyle(element).color), back);
  const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  seen += 1;
  if (ratio < 4.5) found.push(`${ratio.toFixed(2)} "${walker.currentNode.textContent.trim().slice(0, 40)}"`);
}
return [seen, found];
"""


def _settled(true: Callable[[], object]) -> bool:
    try:
        return bool(true())
    except (NoSuchElementException, StaleElementReferenceException):  # replaced while it was looked at
        return False


class Eyes:
    """A browser and somebody in front of it."""

    def __init__(self, browser: webdriver.Chrome, artefacts: Path) -> None:
        self.browser = browser
        self._artefacts = artefacts
        self.expected_complaints: list[str] = []

    def begin(self) -> None:
        """As new."""
        self.browser.get("about:blank")
        self._command("Network.clearBrowserCookies")
        self._command("Emulation.setScriptExecutionDisabled", value=False)
        self.clock_of("UTC")
        self.window(1280)
        self.scheme("light")
        self.languages("en")
        self._complaints()

    def end(self) -> None:
        """Fails on what the browser complained about: errors in scripts, things the security policy refused."""
        complaints = [
            entry["message"]
            for entry in self._complaints()
            if not any(expected in entry["message"] for expected in self.expected_complaints)
        ]
        self.browser.get("about:blank")
        assert not complaints, "\n".join(complaints)

    def open(self, url: str) -> None:
        self.browser.get(url)

    def window(self, width: int, height: int = 900) -> None:
        """A screen of this width; a narrow one is a phone's."""
        phone = width < 600
        scale = 2 if phone else 1
        self._command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone
        )

    def scheme(self, name: str, *, calm: bool = False) -> None:
        """`light` or `dark`; `calm`: as little movement as possible."""
        features = [
            {"name": "prefers-color-scheme", "value": name},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"},
        ]
        self._command("Emulation.setEmulatedMedia", features=features)

    def languages(self, header: str) -> None:
        """What the browser tells the server of its reader."""
        self._command("Network.enable")
        self._command("Network.setExtraHTTPHeaders", headers={"Accept-Language": header})

    def clock_of(self, zone: str) -> None:
        """Where the reader is."""
        self._command("Emulation.setTimezoneOverride", timezoneId=zone)

    def without_script(self) -> None:
        self._command("Emulation.setScriptExecutionDisabled", value=True)

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "body") -> str:
        """What can be read there."""
        return self.one(selector).text

    def ask(self, script: str, *values: Any) -> Any:
        """The value of a script, run in the page."""
        return self.browser.execute_script(script, *values)

    def wait(self, what: str, true: Callable[[], object]) -> None:
        """Until it is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not _settled(true):
            assert time.monotonic() < deadline, f"did not come: {what}\n{self.text()[:1500]}"
            time.sleep(0.05)

    def wait_live(self) -> None:
        """Until the live feed is on, and has brought what is in the database."""
        self.wait("live", lambda: "on" in (self.one("#live").get_attribute("class") or "").split())
        self.wait("the database's part", lambda: not self.all("#instances .gap"))

    def picture(self, name: str) -> None:
        """Keeps a picture of the whole page."""
        width, height = self.ask("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self._command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        (self._artefacts / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def weak_contrasts(self) -> list[str]:
        """Texts that are hard to read."""
        seen, found = self.ask(CONTRAST)
        assert seen > 20, "the page has hardly any text"
        return list(found)

    def overflows(self) -> list[str]:
        """Elements that stick out of the window to the right, and lie in nothing that scrolls."""
        return list(
            self.ask(
                "return [...document.querySelectorAll('body *')]"
                ".filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
                ".filter(e => !e.closest('.scroll, .unseen, thead'))"
                ".map(e => e.outerHTML.slice(0, 120))"
            )
        )

    def _complaints(self) -> list[dict[str, Any]]:
        return list(self.browser.get_log("browser"))  # type: ignore[no-untyped-call]  # Selenium has left it untyped

    def _command(self, name: str, **values: Any) -> Any:
        return self.browser.execute_cdp_cmd(name, values)
