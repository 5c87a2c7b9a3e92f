"""The browser itself: which Chromium, started how, reaching nothing but this machine's loopback."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from playwright.async_api import Browser, Playwright
from playwright.async_api import Error as PlaywrightError

_SYSTEM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

ARGUMENTS = (
    "--lang=en-US",  # dates are typed month first
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    # A new renderer or frame for each navigation, and one in reserve, would cost more than the page does. The rest is
    # what Playwright turns off too (of two lists the last wins): nothing upgrades http, keeps old pages or calls home.
    "--disable-features=RenderDocument,SpareRendererForSitePerProcess,ProactivelySwapBrowsingInstance,"
    "BackForwardCache,PaintHolding,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,DestroyProfileOnBrowserClose,"
    "OptimizationHints,MediaRouter,NetworkTimeServiceQuerying,PreconnectToSearch,"
    "AvoidUnnecessaryBeforeUnloadCheckSync,LensOverlay,Translate",
    # Names resolve to nothing, and what has an address goes to a proxy that is not there (see `launch`).
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--proxy-server=127.0.0.1:9",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)


class BrowserMissing(RuntimeError):
    """No Chromium on this machine; the line says what to install."""


def find_chromium(playwright: Playwright) -> str:
    """Path of the Chromium to use: `ADVSIM_CHROMIUM` if set, else Playwright's own, else the system's.

    Raises:
        BrowserMissing: There is none.
    """
    named = os.environ.get("ADVSIM_CHROMIUM")
    if named:
        if shutil.which(named) is None:
            raise BrowserMissing(f"ADVSIM_CHROMIUM names {named!r}, which is not a program that can be run")
        return named
    own = playwright.chromium.executable_path
    if own and Path(own).is_file():
        return own
    for name in _SYSTEM:
        if found := shutil.which(name):
            return found
    raise BrowserMissing(
        "no Chromium found: `apt-get install chromium` (Debian, Ubuntu) or `playwright install chromium`, "
        "or set ADVSIM_CHROMIUM to its path"
    )


async def launch(playwright: Playwright, port: int | None = None) -> Browser:
    """Start a headless Chromium that can reach nothing but a port of 127.0.0.1.

    Args:
        playwright: Playwright's driver.
        port: The port of the server whose pages it is to open; None for no port at all.

    Raises:
        BrowserMissing: There is none, or it does not start.
    """
    path = find_chromium(playwright)
    arguments = list(ARGUMENTS)
    # `<-loopback>`: without it, loopback would need no proxy, and every service of this machine would be in reach.
    arguments.append("--proxy-bypass-list=<-loopback>" + (f";127.0.0.1:{port}" if port is not None else ""))
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium's sandbox refuses root
    try:
        return await playwright.chromium.launch(executable_path=path, args=arguments)
    except PlaywrightError as error:
        raise BrowserMissing(f"{path} does not start: {str(error).strip().splitlines()[0]}") from error
