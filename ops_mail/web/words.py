"""The words of the page in each of its languages, from the files in `texts/`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from ops_mail.web.language import Language


@cache
def texts_of(language: Language) -> dict[str, str]:
    """All texts of a language by their keys."""
    return tomllib.loads((files("ops_mail.web") / "texts" / f"{language}.toml").read_text(encoding="utf-8"))


class Words:
    """The texts of one language. A text may hold `{names}`; one for a number may be `one mail|{n} mails`."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._texts = texts_of(language)

    def __call__(self, key: str, **values: object) -> str:
        """The text `key` with its names filled in. Raises KeyError for a text that does not exist."""
        return self._texts[key].format(**values) if values else self._texts[key]

    def n(self, key: str, count: int, **values: object) -> str:
        """The text `key` for `count` things; the number is written with separators."""
        one, _, many = self._texts[key].partition("|")
        return (one if count == 1 or not many else many).format(n=f"{count:,}", **values)

    def known(self, group: str, name: str) -> str:
        """The text `group.name`, or `name` itself where there is none: a newer version's word, shown as it is."""
        return self._texts.get(f"{group}.{name}", name)
