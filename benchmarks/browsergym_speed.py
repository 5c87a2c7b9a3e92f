"""Measures BrowserGym's steps a second on given forms, with every delay it has switched off.

BrowserGym pins an old Playwright, so this script has an environment of its own, `.venv-browsergym`, made by
`make bench-browsergym`. `advsim speed` starts it as a subprocess when that environment is there:

    .venv-browsergym/bin/python benchmarks/browsergym_speed.py forms.json --episodes 20 --static browser_eval/static

The input is a list of episodes. An element is named by its label, that is its accessible name, and where
several have that name also by its group, the accessible name of an element around it:

    [{"html": "<!doctype html>…", "actions": [{"kind": "fill", "label": "City", "value": "Oslo"},
                                              {"kind": "select_option", "label": "Unit", "value": "kg"},
                                              {"kind": "check", "label": "Gift"},
                                              {"kind": "click", "label": "Slow", "group": "Delivery"},
                                              {"kind": "click", "label": "Submit"}]}]

Standard output is one JSON object. `wall_s_steps` is the time spent inside `env.step` alone: finding the
element in the last observation and `reset` are not counted. An action that BrowserGym could not carry out
ends the measurement with exit code 1, since failed actions (half a second each) are not the same work.
"""

import argparse
import json
import mimetypes
import os
import shutil
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import playwright.sync_api
from browsergym.core.action.functions import check, click, fill, select_option
from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.core.env import BrowserEnv
from browsergym.core.task import AbstractBrowserTask

# Roles that can take each kind of action; other nodes with the same name (labels, groups) are passed over.
ROLES = {
    "fill": {"textbox", "searchbox", "spinbutton", "Date", "DateTime", "InputTime", "combobox", "slider"},
    "select_option": {"combobox", "listbox", "menulistpopup"},
    "check": {"checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"},
    "click": {"button", "link", "checkbox", "radio", "switch", "tab", "menuitem"},
}


class FormTask(AbstractBrowserTask):
    """Opens one page; the episode never ends by itself, since only speed is measured."""

    def __init__(self, seed: int, url: str) -> None:
        super().__init__(seed)
        self.url = url
        self.slow_mo = 0

    @classmethod
    def get_task_id(cls) -> str:
        return "advsim.form"

    def setup(self, page: playwright.sync_api.Page) -> tuple[str, dict]:
        page.goto(self.url)
        return "Fill in the form.", {}

    def validate(self, page, chat_messages) -> tuple[float, bool, str, dict]:
        return 0.0, False, "", {}


def serve(pages: list[str], static: Path | None) -> ThreadingHTTPServer:
    """Serves page i at /i and the files in `static` at /static/NAME, on a free loopback port.

    Everything else, submissions too, gets a short page.
    """
    files = {f"static/{path.name}": path.read_bytes() for path in static.iterdir() if path.is_file()} if static else {}

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            name = self.path.strip("/")
            kind = "text/html; charset=utf-8"
            if self.command == "GET" and name.isdigit() and int(name) < len(pages):
                body = pages[int(name)].encode()
            elif name in files:
                kind, body = mimetypes.guess_type(name)[0] or "application/octet-stream", files[name]
            else:
                body = b"<!doctype html><title>Received</title><h1>Received</h1>"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *args) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def find_chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if path := shutil.which(name):
            return path
    sys.exit("no Chromium found on PATH: install one (apt-get install chromium) or give --chromium PATH")


def use_chromium(path: str) -> None:
    """Points every browser that BrowserGym launches, the one for its chat too, at the Chromium in `path`."""
    launch = playwright.sync_api.BrowserType.launch

    def launch_installed(self, **kwargs):
        # Chromium's sandbox does not work as root; elsewhere it stays on.
        sandbox = os.geteuid() != 0
        return launch(self, **{**kwargs, "executable_path": path, "chromium_sandbox": sandbox})

    playwright.sync_api.BrowserType.launch = launch_installed


def find_bid(obs: dict, action: dict) -> str:
    """The bid of the element of this name, in this group if one is given, that can take this kind of action."""
    nodes = {node["nodeId"]: node for node in obs["axtree_object"]["nodes"]}

    def name(node: dict) -> str:
        return node.get("name", {}).get("value", "").strip()

    def inside(node: dict, group: str) -> bool:
        while (node := nodes.get(node.get("parentId"))) is not None:
            if name(node) == group:
                return True
        return False

    named = [n for n in nodes.values() if n.get("browsergym_id") and name(n) == action["label"].strip()]
    fitting = [n for n in named if n["role"]["value"] in ROLES[action["kind"]]]
    if "group" in action:
        fitting = [n for n in fitting if inside(n, action["group"].strip())]
    if len(fitting) != 1:
        found = ", ".join(f"{n['browsergym_id']} {n['role']['value']}" for n in named) or "none"
        raise LookupError(f"{action}: expected one element of that name, found {found}")
    return fitting[0]["browsergym_id"]


def action_text(obs: dict, action: dict) -> str:
    kind, bid = action["kind"], find_bid(obs, action)
    if kind in ("fill", "select_option"):
        return f"{kind}({bid!r}, {action['value']!r})"
    return f"{kind}({bid!r})"


def measure(episodes: list[dict], count: int, static: Path | None) -> dict:
    """Runs `count` episodes, going round the list as often as needed."""
    server = serve([episode["html"] for episode in episodes], static)
    base = f"http://127.0.0.1:{server.server_port}"
    actions = HighLevelActionSet(
        subsets=["custom"], custom_actions=[fill, select_option, check, click], multiaction=False, strict=True
    )
    env = BrowserEnv(
        task_entrypoint=FormTask,
        task_kwargs={"url": f"{base}/0"},
        action_mapping=actions.to_python_code,
        pre_observation_delay=0,
    )
    reset_s: list[float] = []
    step_s: list[float] = []
    try:
        for i in range(count):
            episode = episodes[i % len(episodes)]
            env.task_kwargs = {"url": f"{base}/{i % len(episodes)}"}
            start = time.perf_counter()
            obs, _ = env.reset(seed=i)
            reset_s.append(time.perf_counter() - start)
            for action in episode["actions"]:
                text = action_text(obs, action)
                start = time.perf_counter()
                obs, *_ = env.step(text)
                step_s.append(time.perf_counter() - start)
                if obs["last_action_error"]:
                    raise RuntimeError(f"episode {i}, {text}: {obs['last_action_error']}")
            print(f"episode {i + 1}/{count}: {len(step_s)} steps in {sum(step_s):.1f} s", file=sys.stderr)
    finally:
        env.close()
        server.shutdown()
    return {
        "steps": len(step_s),
        "resets": len(reset_s),
        "wall_s_steps": round(sum(step_s), 4),
        "steps_per_s": round(len(step_s) / sum(step_s), 4) if step_s else 0.0,
        "reset_s": round(sum(reset_s) / len(reset_s), 4),
        "browsergym": version("browsergym-core"),
        "playwright": version("playwright"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure BrowserGym's steps a second on given HTML forms.")
    parser.add_argument("forms", type=Path, help="JSON list of episodes: html and actions (- reads stdin)")
    parser.add_argument("--episodes", type=int, help="episodes to run (default: each form once)")
    parser.add_argument("--static", type=Path, help="folder whose files the forms find at /static/")
    parser.add_argument("--chromium", help="Chromium to start (default: ADVSIM_CHROMIUM, else the first on PATH)")
    args = parser.parse_args()

    text = sys.stdin.read() if str(args.forms) == "-" else args.forms.read_text(encoding="utf-8")
    episodes = json.loads(text)
    count = len(episodes) if args.episodes is None else args.episodes
    if not episodes or count < 1:
        parser.error("at least one form and one episode are needed")
    use_chromium(args.chromium or os.environ.get("ADVSIM_CHROMIUM") or find_chromium())
    try:
        result = measure(episodes, count, args.static)
    except (LookupError, RuntimeError, playwright.sync_api.Error) as error:
        print(f"browsergym_speed: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
