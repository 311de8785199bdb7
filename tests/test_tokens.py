"""Tokens: shown by `reveal()` only, made again from the nonce, never handed out if they are not the right one."""

from __future__ import annotations

import copy
import json
import pickle
import pprint
import traceback
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import InvalidInput, Unavailable
from coordinator.tokens import Nonce, Token, derive, draw
from tests.support import secret_of

KEY = b"k" * 32
OTHER_KEY = b"o" * 32
SECRET = bytes(range(32))
SECRETS = st.binary(min_size=32, max_size=32)


def shows(text: str, token: Token) -> bool:
    """Whether any piece of the secret is to be seen, as hex or as bytes."""
    secret = secret_of(token)
    pieces = [secret[n : n + 8] for n in range(0, 64, 8)]
    return any(piece in text.lower() for piece in pieces) or repr(bytes.fromhex(secret))[2:10] in text


# Masking


@given(SECRETS)
def test_no_way_of_writing_a_token_shows_it(secret: bytes):
    token = Token(secret, 7)

    written = [str(token), repr(token), f"{token}", f"{token!r:>70}", "%s %r" % (token, token), ascii(token)]  # noqa: UP031
    written += [pprint.pformat({"token": [token]}), f"{token:<80}", str([token]), str({token: token})]

    assert not any(shows(text, token) for text in written)
    assert all("Token(" in text for text in written)


def test_a_token_has_no_attribute_dictionary_to_stumble_on():
    with pytest.raises(TypeError):
        vars(Token(SECRET, 7))


@pytest.mark.parametrize("write", [json.dumps, msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins])
def test_no_encoder_writes_a_token_by_accident(write: Any):
    with pytest.raises(TypeError) as caught:
        write({"token": Token(SECRET, 7)})

    assert not shows(str(caught.value), Token(SECRET, 7))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_a_token_is_refused_and_says_what_to_do(protocol: int):
    with pytest.raises(TypeError, match="use reveal"):
        pickle.dumps(Token(SECRET, 7), protocol)


def test_a_copy_of_a_token_is_the_token():
    token = Token(SECRET, 7)

    assert copy.copy(token) is token
    assert copy.deepcopy([token])[0] is token


def test_a_token_cannot_be_changed():
    token = Token(SECRET, 7)

    with pytest.raises(AttributeError, match="cannot be changed"):
        token.digest = "0" * 64
    with pytest.raises(AttributeError, match="cannot be changed"):
        del token.digest
    with pytest.raises(AttributeError, match="cannot be changed"):
        token.other = 1  # pyright: ignore[reportAttributeAccessIssue]


# Revealing and parsing


@given(SECRETS)
def test_what_reveal_wrote_is_parsed_back_to_the_same_token(secret: bytes):
    token = Token(secret, 7)

    assert Token.parse("token", token.reveal()) == token
    assert Token.parse("token", token.reveal().upper()) == token
    assert token.digest == sha256(secret).hexdigest()
    assert token.reveal() == f"7-{secret.hex()}"


def test_a_token_is_accepted_where_its_text_is():
    token = Token(SECRET, 7)

    assert Token.parse("token", token) is token


@pytest.mark.parametrize(
    "text",
    [
        "",
        SECRET.hex(),
        "-" + SECRET.hex(),
        "0-" + SECRET.hex(),
        "-7-" + SECRET.hex(),
        "\u0667-" + SECRET.hex(),  # a digit, but not an ASCII one
        "9" * 20 + "-" + SECRET.hex(),
        "7-" + SECRET.hex()[:-1],
        "7-" + SECRET.hex() + "0",
        "7-" + SECRET.hex() + "\n",
        "7- " + SECRET.hex()[1:],
        "7-" + SECRET.hex()[:-1] + "g",
        "7-" + SECRET.hex()[:-1] + "\u0665",
        SECRET,
        None,
        7,
    ],
)
def test_what_is_no_token_is_refused_without_being_shown(text: Any):
    with pytest.raises(InvalidInput) as caught:
        Token.parse("token", text)

    shown = "".join(traceback.format_exception(caught.value))
    assert caught.value.field == "token"
    assert not shows(shown, Token(SECRET, 7))


@pytest.mark.parametrize("secret", [b"", b"x" * 31, b"x" * 33, "x" * 32, bytearray(32)])
def test_a_token_is_made_of_exactly_32_bytes(secret: Any):
    with pytest.raises(ValueError, match="32 bytes") as caught:
        Token(secret, 7)

    assert "xx" not in str(caught.value)


# Equality


@given(SECRETS, SECRETS)
def test_tokens_are_equal_exactly_if_their_secrets_are(one: bytes, other: bytes):
    assert (Token(one, 7) == Token(other, 7)) == (one == other)
    assert Token(one, 7) == Token(bytes(bytearray(one)), 7)
    assert hash(Token(one, 7)) == hash(Token(bytes(bytearray(one)), 7))


def test_a_token_equals_neither_its_text_nor_its_digest():
    token = Token(SECRET, 7)

    assert token != token.reveal()
    assert token.reveal() != token
    assert token != token.digest
    assert token != SECRET


# Drawing and deriving


@given(SECRETS, st.binary(min_size=16, max_size=16))
def test_the_token_of_a_nonce_is_the_same_every_time(key: bytes, randomness: bytes):
    nonce = draw(key, randomness)

    token = derive(key, nonce.value, nonce.token_digest, fence=7)

    assert nonce.value == randomness.hex()
    assert token == derive(key, nonce.value, nonce.token_digest, fence=7)
    assert token.digest == nonce.token_digest


def test_every_draw_is_another_nonce_and_another_token():
    drawn = [draw(KEY) for _ in range(1_000)]

    assert len({nonce.value for nonce in drawn}) == len({nonce.token_digest for nonce in drawn}) == 1_000
    assert all(len(nonce.value) == 32 for nonce in drawn)


def test_the_nonce_shows_nothing_of_the_token():
    nonce = draw(KEY)

    assert not shows(repr(nonce), derive(KEY, nonce.value, nonce.token_digest, fence=7))


@pytest.mark.parametrize(
    ("key", "nonce"),
    [
        (OTHER_KEY, draw(KEY, b"n" * 16)),
        (KEY, Nonce("00" * 16, draw(KEY, b"n" * 16).token_digest)),
        (KEY, Nonce(draw(KEY, b"n" * 16).value, "")),
        (KEY, Nonce("é", "é")),
    ],
)
def test_a_token_that_is_not_the_one_in_the_event_is_not_handed_out_and_not_shown(key: bytes, nonce: Nonce):
    with pytest.raises(Unavailable, match="key does not fit this log") as caught:
        derive(key, nonce.value, nonce.token_digest, fence=7)

    drawn = draw(KEY, b"n" * 16)
    right = derive(KEY, drawn.value, drawn.token_digest, fence=7)
    assert not shows("".join(traceback.format_exception(caught.value)), right)


def test_a_token_stays_the_same_in_later_versions():
    nonce = draw(KEY, b"\x01" * 16)

    assert nonce.token_digest == "365e42208c698f8d28633cc6d6606337a58a735b604b86fcc05f11a875f99ead"
