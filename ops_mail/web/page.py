"""The page as HTML: whole for a request, in pieces for the live feed. Everything shown is escaped by the templates."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ops_mail.web.advice import advice_for
from ops_mail.web.assets import asset_url
from ops_mail.web.chart import HEIGHT, chart_of
from ops_mail.web.display import size_text
from ops_mail.web.headline import Headline, headline_of
from ops_mail.web.language import Language
from ops_mail.web.snapshot import Level, Snapshot
from ops_mail.web.when import absolute, iso, relative
from ops_mail.web.words import Words

SECTIONS = ("headline", "mailboxes", "arrivals", "messages", "dead", "latest", "instances")
"""The parts that change, each an element with this id and a template of this name."""

RELOAD_SECONDS = 10
_TIME_WORDS = ("ago.s", "ago.min", "ago.h", "ago.d", "in.s", "in.min", "in.h", "in.d")
_LIVE_WORDS = ("live.on", "live.wait", "live.lost", "live.denied")
_TYPED = re.compile(r"`([^`]+)`|\b(OPS_MAIL_[A-Z0-9_]+(?:=\w+)?)")


@dataclass(frozen=True, slots=True)
class Frame:
    """What the live feed sends: the whole page in one language, without what grows by itself."""

    title: str
    icon: str
    sections: dict[str, str]


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom a page is made. `chosen`: the language was asked for by `?lang=`; `signed_in`: may sign out."""

    language: Language
    chosen: bool = False
    signed_in: bool = False

    @property
    def query(self) -> str:
        """What keeps the language from page to page."""
        return f"?lang={self.language}" if self.chosen else ""


class Page:
    """Renders; holds the compiled templates and no state of its own."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("ops_mail.web", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {"typed": _typed, "number": "{:,}".format, "size": size_text}
        self._environment.globals |= {"asset_url": asset_url, "iso": iso, "Level": Level, "languages": tuple(Language)}

    def whole(self, snapshot: Snapshot, reader: Reader) -> str:
        """The page at `/`."""
        words = Words(reader.language)
        context = _context(snapshot, words, live=False)
        return self._environment.get_template("page.html").render(
            **context,
            **_frame_facts(snapshot, words, context["headline"]),
            reader=reader,
            sections=SECTIONS,
            reload_seconds=RELOAD_SECONDS,
            script_words=json.dumps({key: words(key, n="{n}") for key in (*_TIME_WORDS, *_LIVE_WORDS)}),
        )

    def frame(self, snapshot: Snapshot, language: Language) -> Frame:
        """The parts that change. Relative times are left to the script, so equal facts make equal frames."""
        words = Words(language)
        context = _context(snapshot, words, live=True)
        sections = {
            name: self._environment.get_template(f"sections/{name}.html").render(**context) for name in SECTIONS
        }
        return Frame(**_frame_facts(snapshot, words, context["headline"]), sections=sections)

    def sign_in(self, reader: Reader, problem: str | None) -> str:
        """The form that asks for the token; `problem` names the words that say why it is shown again."""
        return self._environment.get_template("sign_in.html").render(
            t=Words(reader.language), reader=reader, problem=problem
        )


def _context(snapshot: Snapshot, words: Words, *, live: bool) -> dict[str, Any]:
    return {
        "page": snapshot,
        "t": words,
        "live": live,
        "headline": headline_of(snapshot),
        "chart": None if snapshot.overview is None else chart_of(snapshot.overview.hours),
        "chart_height": HEIGHT,
        "advice_for": lambda box: advice_for(box, words),
        "relative": lambda at: relative(at, snapshot.now, words),
        "absolute": lambda at: absolute(at, snapshot.now),
    }


def _frame_facts(snapshot: Snapshot, words: Words, headline: Headline) -> dict[str, str]:
    bad = headline.level in (Level.BAD, Level.WARN)
    text = words.n(f"headline.{headline.key}", headline.count)
    return {
        "title": f"{text} · {words('title')} · {snapshot.instance}",
        "icon": asset_url("icon-bad.svg" if bad else "icon-ok.svg"),
    }


def _typed(text: str) -> Markup:
    """What is typed as it stands (settings, and commands in backticks) in a typewriter's letters; the rest escaped."""
    pieces: list[Markup] = []
    end = 0
    for match in _TYPED.finditer(text):
        code = escape(match[1] or match[2]).replace("_", Markup("_<wbr>"))  # long names may break there
        pieces += [escape(text[end : match.start()]), Markup("<code>%s</code>") % code]
        end = match.end()
    return Markup("").join([*pieces, escape(text[end:])])
