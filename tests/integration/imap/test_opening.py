from __future__ import annotations

import asyncio
import base64
import datetime as dt
import logging
import ssl
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ops_mail.core.mailbox import AuthMethod, Security
from ops_mail.errors import Failure, ImapError
from ops_mail.imap import open_session
from tests.integration.imap.opening import options
from tests.servers.dovecot import Dovecot
from tests.servers.scripted import Peer, ReceivedCommand, ScriptedImap


@pytest.mark.parametrize("security", list(Security))
async def test_a_login_over_each_kind_of_connection(dovecot: Dovecot, user: str, security: Security) -> None:
    port = dovecot.tls_port if security is Security.TLS else dovecot.port
    session = await open_session(
        options(dovecot, user=user, security=security, port=port, host="localhost", ca_file=dovecot.ca_file)
    )
    assert session.can_idle
    assert {"IDLE", "UIDPLUS", "MOVE"} <= session.capabilities
    expires = session.certificate_expires_at
    if security is Security.PLAIN:
        assert expires is None
    else:
        assert expires is not None
        assert expires > dt.datetime.now(dt.UTC)
    assert (await session.select("INBOX")).exists == 0
    await session.logout(5)
    assert not session.usable


async def test_a_wrong_password_keeps_the_servers_words_and_no_secret(dovecot: Dovecot, user: str) -> None:
    with pytest.raises(ImapError, match="AUTHENTICATIONFAILED") as caught:
        await open_session(options(dovecot, user=user, read_password=lambda: "wrong-secret"))
    assert caught.value.failure is Failure.AUTH
    assert "OPS_MAIL_IMAP_PASSWORD" in str(caught.value)
    assert "wrong-secret" not in str(caught.value)


async def test_the_password_is_read_anew_at_each_login(dovecot: Dovecot, user: str) -> None:
    passwords = iter([dovecot.password, "changed"])
    chosen = options(dovecot, user=user, read_password=lambda: next(passwords))
    await (await open_session(chosen)).logout(5)
    with pytest.raises(ImapError) as caught:
        await open_session(chosen)
    assert caught.value.failure is Failure.AUTH


async def test_a_password_file_that_is_gone_is_an_auth_failure(dovecot: Dovecot, tmp_path: Path) -> None:
    with pytest.raises(ImapError, match="cannot be read") as caught:
        await open_session(options(dovecot, read_password=(tmp_path / "none").read_text))
    assert caught.value.failure is Failure.AUTH


@pytest.mark.parametrize("password", ["", "two\r\nlines", "latin1-\udce4"])
async def test_a_password_that_cannot_be_sent_is_refused_here(dovecot: Dovecot, password: str) -> None:
    with pytest.raises(ImapError, match="OPS_MAIL_IMAP_PASSWORD") as caught:
        await open_session(options(dovecot, read_password=lambda: password))
    assert caught.value.failure is Failure.AUTH
    assert not password or password not in str(caught.value)


@pytest.mark.parametrize("user", ["two\r\nlines", "latin1-\udce4"])
async def test_a_user_name_that_cannot_be_sent_is_refused_here(dovecot: Dovecot, user: str) -> None:
    with pytest.raises(ImapError, match="OPS_MAIL_IMAP_USERNAME") as caught:
        await open_session(options(dovecot, user=user))
    assert caught.value.failure is Failure.AUTH


async def test_a_name_that_does_not_exist_is_unreachable(dovecot: Dovecot) -> None:
    with pytest.raises(ImapError, match="cannot be resolved") as caught:
        await open_session(options(dovecot, host="mail.invalid"))
    assert caught.value.failure is Failure.UNREACHABLE
    assert "OPS_MAIL_IMAP_HOST" in str(caught.value)


async def test_a_port_where_nobody_listens_is_unreachable() -> None:
    async with ScriptedImap() as server:
        pass
    with pytest.raises(ImapError, match="no connection to") as caught:
        await open_session(options(server))
    assert caught.value.failure is Failure.UNREACHABLE


async def test_a_greeting_that_never_comes_ends_at_the_connect_timeout() -> None:
    async with ScriptedImap(greeting=None) as server:
        with pytest.raises(ImapError, match="the greeting did not finish") as caught:
            await open_session(options(server, connect=1.5))
    assert caught.value.failure is Failure.UNREACHABLE


async def test_a_tls_handshake_that_never_ends_stops_at_the_connect_timeout() -> None:
    async with ScriptedImap(greeting=None) as server:
        with pytest.raises(ImapError, match="TLS handshake did not finish") as caught:
            await open_session(options(server, connect=1.5, security=Security.TLS))
    assert caught.value.failure is Failure.UNREACHABLE


async def test_a_server_that_says_bye_at_once() -> None:
    async with ScriptedImap(greeting=b"* BYE too many connections from your address") as server:
        with pytest.raises(ImapError, match="too many connections from your address") as caught:
            await open_session(options(server))
    assert caught.value.failure is Failure.BYE


@pytest.mark.parametrize("greeting", [b"220 smtp.example.org ESMTP", b"* WHAT", b"HTTP/1.1 400 Bad Request"])
async def test_another_protocol_is_named_as_such(greeting: bytes) -> None:
    async with ScriptedImap(greeting=greeting) as server:
        with pytest.raises(ImapError) as caught:
            await open_session(options(server))
    assert caught.value.failure is Failure.PROTOCOL


async def test_a_connection_that_is_logged_in_from_the_start_needs_no_login() -> None:
    async with ScriptedImap(greeting=b"* PREAUTH welcome") as server:
        session = await open_session(options(server))
        assert (await session.select("INBOX")).uid_validity == 7
        await session.logout(5)
        assert not server.commands("LOGIN")


async def test_starttls_after_preauth_is_refused() -> None:
    async with ScriptedImap(greeting=b"* PREAUTH welcome") as server:
        with pytest.raises(ImapError, match="PREAUTH") as caught:
            await open_session(options(server, security=Security.STARTTLS))
    assert caught.value.failure is Failure.TLS


async def test_capabilities_in_the_greeting_are_understood_and_asked_for_again_after_the_login() -> None:
    greeting = b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN IDLE] ready"
    async with ScriptedImap(greeting=greeting, capabilities="IMAP4rev1") as server:
        session = await open_session(options(server))
        assert not session.can_idle  # the list after the login counts
        await session.logout(5)
        assert len(server.commands("CAPABILITY")) == 1


# --- certificates


def tls_server(authority: trustme.CA, *names: str, ends: dt.datetime | None = None) -> ScriptedImap:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, not_after=ends).configure_cert(context)
    return ScriptedImap(tls=context)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


async def test_an_expired_certificate_is_called_expired(authority: trustme.CA, ca_file: Path) -> None:
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    async with tls_server(authority, "localhost", "127.0.0.1", ends=yesterday) as server:
        with pytest.raises(ImapError, match="has expired") as caught:
            await open_session(options(server, security=Security.TLS, ca_file=ca_file))
    assert caught.value.failure is Failure.TLS


async def test_a_certificate_for_another_host_is_called_a_mismatch(authority: trustme.CA, ca_file: Path) -> None:
    async with tls_server(authority, "mail.example.org") as server:
        with pytest.raises(ImapError, match="host name mismatch") as caught:
            await open_session(options(server, security=Security.TLS, ca_file=ca_file))
    assert caught.value.failure is Failure.TLS


async def test_an_in_house_authority_without_key_identifiers_is_trusted_on_every_python(tmp_path: Path) -> None:
    """Python 3.13's defaults would refuse it with "Missing Authority Key Identifier"."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "in-house")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "in-house.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file = tmp_path / "in-house.key"
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key_file)
    async with ScriptedImap(tls=context) as server:
        session = await open_session(options(server, security=Security.TLS, ca_file=pem))
        await session.logout(5)


async def test_an_unknown_authority_points_at_the_setting(authority: trustme.CA) -> None:
    async with tls_server(authority, "127.0.0.1") as server:
        with pytest.raises(ImapError, match="OPS_MAIL_IMAP_CA_FILE") as caught:
            await open_session(options(server, security=Security.TLS))
    assert caught.value.failure is Failure.TLS


@pytest.mark.parametrize("content", [None, "this is no certificate"])
async def test_a_ca_file_that_cannot_be_used_is_named(dovecot: Dovecot, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ImapError, match=r"authority\.pem.*OPS_MAIL_IMAP_CA_FILE") as caught:
        await open_session(options(dovecot, security=Security.TLS, port=dovecot.tls_port, ca_file=path))
    assert caught.value.failure is Failure.TLS


async def test_tls_on_a_plain_port_is_recognised(dovecot: Dovecot) -> None:
    with pytest.raises(ImapError, match="does not speak TLS") as caught:
        await open_session(options(dovecot, security=Security.TLS))
    assert caught.value.failure is Failure.TLS


async def test_starttls_that_is_not_offered_sends_no_password() -> None:
    async with ScriptedImap() as server:
        with pytest.raises(ImapError, match="does not offer STARTTLS") as caught:
            await open_session(options(server, security=Security.STARTTLS))
        assert not server.commands("LOGIN")
    assert caught.value.failure is Failure.TLS


async def test_text_injected_behind_starttls_is_not_believed() -> None:
    async def injecting(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(f"{command.tag} OK go ahead".encode(), b"* CAPABILITY IMAP4rev1 LOGINDISABLED")

    async with ScriptedImap(on={"STARTTLS": injecting}) as server:
        with pytest.raises(ImapError, match="STARTTLS") as caught:
            await open_session(options(server, security=Security.STARTTLS))
        assert not server.commands("LOGIN")
    assert caught.value.failure is Failure.PROTOCOL


async def test_capabilities_told_before_starttls_are_forgotten(authority: trustme.CA, ca_file: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def upgrading(peer: Peer, command: ReceivedCommand) -> None:
        await peer.ok(command)
        await peer.writer.start_tls(context)

    greeting = b"* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] ready"
    async with ScriptedImap(greeting=greeting, on={"STARTTLS": upgrading}) as server:
        session = await open_session(options(server, security=Security.STARTTLS, ca_file=ca_file))
        await session.logout(5)
        assert len(server.commands("LOGIN")) == 1


# --- logins


async def test_logins_disabled_in_plain_text_send_no_password() -> None:
    async with ScriptedImap(capabilities="IMAP4rev1 LOGINDISABLED STARTTLS") as server:
        with pytest.raises(ImapError, match="LOGINDISABLED") as caught:
            await open_session(options(server))
        assert not server.commands("LOGIN")
    assert caught.value.failure is Failure.AUTH


@pytest.mark.parametrize("extra", ["", " SASL-IR"])
async def test_a_password_that_is_not_ascii_goes_by_authenticate(extra: str) -> None:
    seen: list[bytes] = []

    async def authenticate(peer: Peer, command: ReceivedCommand) -> None:
        if " " in command.arguments:
            seen.append(command.arguments.split()[1].encode())
        else:
            await peer.send(b"+ ")
            seen.append(await peer.line())
        await peer.ok(command)

    server = ScriptedImap(capabilities="IMAP4rev1 AUTH=PLAIN" + extra, on={"AUTHENTICATE": authenticate})
    async with server:
        session = await open_session(options(server, read_password=lambda: "pässwort"))
        await session.logout(5)
    assert base64.b64decode(seen[0]) == "\0alice\0pässwort".encode()


async def test_quotes_and_backslashes_in_a_login_are_escaped() -> None:
    async with ScriptedImap() as server:
        session = await open_session(options(server, user='a"b', read_password=lambda: 'p\\"w'))
        await session.logout(5)
        assert server.commands("LOGIN") == [rb'LOGIN "a\"b" "p\\\"w"']


async def test_an_access_token_logs_in_by_xoauth2() -> None:
    server = ScriptedImap(capabilities="IMAP4rev1 AUTH=XOAUTH2 SASL-IR")
    async with server:
        chosen = options(server, auth=AuthMethod.OAUTH2, read_password=lambda: "to-ken")
        await (await open_session(chosen)).logout(5)
        (line,) = server.commands("AUTHENTICATE")
    mechanism, coded = line.split()[1:]
    assert mechanism == b"XOAUTH2"
    assert base64.b64decode(coded) == b"user=alice\1auth=Bearer to-ken\1\1"


async def test_a_server_with_oauthbearer_alone_gets_that() -> None:
    server = ScriptedImap(capabilities="IMAP4rev1 AUTH=OAUTHBEARER SASL-IR")
    async with server:
        chosen = options(server, auth=AuthMethod.OAUTH2, read_password=lambda: "to-ken")
        await (await open_session(chosen)).logout(5)
        (line,) = server.commands("AUTHENTICATE")
    assert base64.b64decode(line.split()[2]).startswith(b"n,a=alice,\1host=127.0.0.1\1")


@pytest.mark.parametrize("extra", ["", " SASL-IR"])
async def test_a_refused_token_gets_its_empty_answer_and_ends_the_login(extra: str) -> None:
    answers: list[bytes] = []

    async def refusing(peer: Peer, command: ReceivedCommand) -> None:
        if " " not in command.arguments:
            await peer.send(b"+ ")
            await peer.line()
        await peer.send(b"+ eyJzdGF0dXMiOiI0MDAifQ==")
        answers.append(await peer.line())
        await peer.no(command, "AUTHENTICATE failed for to-ken")

    capabilities = "IMAP4rev1 AUTH=XOAUTH2" + extra
    async with ScriptedImap(capabilities=capabilities, on={"AUTHENTICATE": refusing}) as server:
        with pytest.raises(ImapError, match="access token") as caught:
            await open_session(options(server, auth=AuthMethod.OAUTH2, read_password=lambda: "to-ken", command=2))
    assert caught.value.failure is Failure.AUTH
    assert answers == [b""]
    assert "to-ken" not in str(caught.value)


async def test_a_server_that_challenges_for_ever_is_left() -> None:
    async def challenging(peer: Peer, command: ReceivedCommand) -> None:
        while True:
            await peer.send(b"+ more")
            await peer.line()

    async with ScriptedImap(on={"AUTHENTICATE": challenging}) as server:
        with pytest.raises(ImapError) as caught:
            await open_session(options(server, auth=AuthMethod.OAUTH2))
    assert caught.value.failure is Failure.PROTOCOL


async def test_a_secret_that_the_server_echoes_is_struck_out_and_long_text_is_cut() -> None:
    async def echoing(peer: Peer, command: ReceivedCommand) -> None:
        await peer.no(command, f"bad login: {command.arguments} " + "x" * 500)

    async with ScriptedImap(on={"LOGIN": echoing}) as server:
        with pytest.raises(ImapError) as caught:
            await open_session(options(server, read_password=lambda: "geheim-42"))
    assert "geheim-42" not in str(caught.value)
    assert "bad login" in str(caught.value)
    assert len(str(caught.value)) < 450


@pytest.mark.parametrize(
    "text", ["[UNAVAILABLE] try later", "[ALERT] Too many simultaneous connections. (Failure)", "[LIMIT] enough"]
)
async def test_the_servers_own_trouble_is_no_wrong_password(text: str) -> None:
    async def busy(peer: Peer, command: ReceivedCommand) -> None:
        await peer.no(command, text)

    async with ScriptedImap(on={"LOGIN": busy}) as server:
        with pytest.raises(ImapError) as caught:
            await open_session(options(server))
    assert caught.value.failure is Failure.PROTOCOL


async def test_nothing_secret_is_logged_by_the_library(dovecot: Dovecot, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    library = "aioimaplib.aioimaplib"
    caplog.set_level(logging.DEBUG, library)  # as a later logging configuration might
    await (await open_session(options(dovecot))).logout(5)
    logging.getLogger(library).critical("Sending : %s", dovecot.password)
    assert not [record for record in caplog.records if record.name.startswith("aioimaplib")]
    assert dovecot.password not in caplog.text


async def test_options_and_commands_show_no_secret(dovecot: Dovecot) -> None:
    chosen = options(dovecot, read_password=lambda: "geheim-42")
    assert "geheim" not in repr(chosen)
    assert "read_password" not in repr(chosen)


# --- ID


async def test_id_is_sent_in_the_form_that_netease_accepts_and_before_select() -> None:
    async def unsafe(peer: Peer, command: ReceivedCommand) -> None:
        if not peer.identified:
            await peer.no(command, "SELECT Unsafe Login. Please contact kefu@188.com for help")
            return
        await peer.send(b"* 0 EXISTS", b"* OK [UIDVALIDITY 1] valid", f"{command.tag} OK done".encode())

    async with ScriptedImap(on={"SELECT": unsafe}) as server:
        session = await open_session(options(server))
        folder = await session.select("INBOX")
        assert (folder.uid_validity, folder.uid_next) == (1, None)
        await session.logout(5)
        assert server.commands("ID ") == [b'ID ("name" "ops-mail" "version" "test")']


async def test_no_id_where_none_is_announced() -> None:
    async with ScriptedImap(capabilities="IMAP4rev1 IDLE") as server:
        await (await open_session(options(server))).logout(5)
        assert not server.commands("ID ")


async def test_an_id_that_is_refused_does_not_matter() -> None:
    async def refusing(peer: Peer, command: ReceivedCommand) -> None:
        await peer.bad(command, "what?")

    async with ScriptedImap(on={"ID": refusing}) as server:
        session = await open_session(options(server))
        assert session.usable
        await session.logout(5)


# --- cancelling


async def test_a_cancelled_opening_leaves_no_connection_behind() -> None:
    async def silent(peer: Peer, command: ReceivedCommand) -> None:
        await asyncio.Event().wait()

    async with ScriptedImap(on={"LOGIN": silent}) as server:
        opening = asyncio.create_task(open_session(options(server)))
        await server.until(lambda: bool(server.commands("LOGIN")))
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert await asyncio.wait_for(server.peers[0].reader.read(), 5) == b""
