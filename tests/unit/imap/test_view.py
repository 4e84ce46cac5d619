from __future__ import annotations

from ops_mail.imap.view import FolderView


def hinted(view: FolderView) -> bool:
    return view.hint_at is not None


def pushed(view: FolderView) -> bool:
    return view.pushed_in_idle


def selected(exists: int = 10) -> FolderView:
    view = FolderView()
    view.begin_select()
    view.note(b"* %d EXISTS" % exists, 1.0)
    view.note(b"* 2 RECENT", 1.0)
    view.end_select()
    return view


def test_the_counts_of_select_are_no_hint() -> None:
    view = selected()
    assert view.exists == 10
    assert view.hint_at is None


def test_a_folder_that_grows_is_a_hint_and_the_oldest_counts() -> None:
    view = selected()
    assert view.note(b"* 11 EXISTS", 5.0)
    assert view.note(b"* 12 EXISTS", 6.0)
    assert view.hint_at == 5.0
    view.clear_hint()
    assert not hinted(view)
    assert not view.note(b"* 12 EXISTS", 7.0)


def test_an_expunge_and_a_new_mail_at_once_are_a_hint() -> None:
    view = selected()
    assert not view.note(b"* 3 EXPUNGE", 5.0)
    assert view.note(b"* 10 EXISTS", 5.0)


def test_a_folder_that_shrinks_or_changes_flags_is_no_hint() -> None:
    view = selected()
    assert not view.note(b"* 9 EXISTS", 5.0)
    assert not view.note(b"* 2 RECENT", 5.0)
    assert not view.note(rb"* 2 FETCH (FLAGS (\Seen))", 5.0)
    assert not view.note(b"* OK Still here", 5.0)
    assert view.hint_at is None


def test_more_recent_mails_are_a_hint() -> None:
    view = selected()
    assert view.note(b"* 3 recent", 5.0)


def test_only_a_hint_within_idle_is_a_push() -> None:
    view = selected()
    view.note(b"* 11 EXISTS", 5.0)
    assert not pushed(view)
    view.idling = True
    view.note(b"* 12 EXISTS", 6.0)
    assert pushed(view)
    view.clear_hint()
    assert not pushed(view)


def test_expunges_never_count_below_zero() -> None:
    view = selected(0)
    view.note(b"* 1 EXPUNGE", 5.0)
    assert view.exists == 0
